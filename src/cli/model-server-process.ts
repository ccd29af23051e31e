import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../config.ts';
import { homePaths, isSameFolder, placeOf, toHomePlace } from '../home.ts';
import { DEMO_KEY } from '../model-server-id.ts';
import { isAlive, ownIdentity, signalProcess, toProcessIdentity, type ProcessIdentity } from '../process-identity.ts';
import { CliError, EXIT } from './cli-error.ts';

/** A model server that was started for a home and goes on by itself. */
export interface ModelServer {
  readonly process: ProcessIdentity;
  readonly port: number;
  readonly url: string;
  /** Its file came here with a copy of another home. */
  readonly isOfAnotherHome: boolean;
}

const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 5000;
const POLL_MS = 50;

/** Writes down where this process's model server listens, and for which home: the file may be copied with it. */
export function writeModelServer(file: string, port: number): void {
  const draft = `${file}.${process.pid}`;
  const home = placeOf(dirname(dirname(file)));
  writeFileSync(draft, JSON.stringify({ process: ownIdentity(), port, home }), { mode: 0o600 });
  renameSync(draft, file);
}

/** The home's model server, if it runs. */
export function runningModelServer(home: string): ModelServer | undefined {
  const known = lastModelServer(home);
  return known && !known.isOfAnotherHome && isAlive(known.process) ? known : undefined;
}

/** The environment for workers whose model is the home's own simulator, which is started if it does not run. */
export async function demoEnvironment(home: string, env: Environment): Promise<Environment> {
  return simulatorEnvironment(env, (await ensureModelServer(home)).url);
}

/** An environment whose model is the simulator. */
export function simulatorEnvironment(env: Environment, url: string): Environment {
  const model = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: DEMO_KEY, ERRAND_MODEL: 'sim-1' };
  return { ...env, ...model, ANTHROPIC_AUTH_TOKEN: undefined };
}

/** The home's model server; starts one if none runs, where the last one listened if it can, so that runs find it again. */
export async function ensureModelServer(home: string): Promise<ModelServer> {
  const running = runningModelServer(home);
  if (running) return running;
  const lastPort = lastModelServer(home)?.port;
  const again = lastPort === undefined ? undefined : await startModelServer(home, lastPort);
  const started = again ?? (await startModelServer(home, 0));
  if (started) return started;
  throw new CliError(`The model server did not start; see ${logFile(home)}.`, EXIT.unreachable);
}

/** Stops the home's model server; false when none runs. */
export async function stopModelServer(home: string): Promise<boolean> {
  const running = runningModelServer(home);
  if (running === undefined) return false;
  signalProcess(running.process, 'SIGTERM');
  const deadlineMs = Date.now() + STOP_TIMEOUT_MS;
  while (isAlive(running.process) && Date.now() < deadlineMs) await delay(POLL_MS);
  signalProcess(running.process, 'SIGKILL');
  return true;
}

async function startModelServer(home: string, port: number): Promise<ModelServer | undefined> {
  mkdirSync(homePaths(home).server, { recursive: true, mode: 0o700 });
  rmSync(stateFile(home), { force: true });
  const log = openSync(logFile(home), 'a', 0o600);
  const main = fileURLToPath(new URL('./main.js', import.meta.url));
  const ledger = join(homePaths(home).server, 'model-server-ledger.jsonl');
  const args = [
    'model-server',
    '--scenario',
    'demo',
    '--port',
    String(port),
    '--state',
    stateFile(home),
    '--ledger',
    ledger,
  ];
  const child = spawn(process.execPath, [main, ...args], { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  child.unref();
  const deadlineMs = Date.now() + START_TIMEOUT_MS;
  while (child.exitCode === null && Date.now() < deadlineMs) {
    const running = runningModelServer(home);
    if (running) return running;
    await delay(POLL_MS);
  }
  return undefined;
}

function lastModelServer(home: string): ModelServer | undefined {
  try {
    const state = JSON.parse(readFileSync(stateFile(home), 'utf8')) as Record<string, unknown>;
    const identity = toProcessIdentity(state['process']);
    const place = toHomePlace(state['home']);
    if (identity === undefined || typeof state['port'] !== 'number') return undefined;
    const port = state['port'];
    const isOfAnotherHome = place !== undefined && !isSameFolder(place, placeOf(home));
    return { process: identity, port, url: `http://127.0.0.1:${port}`, isOfAnotherHome };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function stateFile(home: string): string {
  return join(homePaths(home).server, 'model-server.json');
}

function logFile(home: string): string {
  return join(homePaths(home).server, 'model-server.log');
}

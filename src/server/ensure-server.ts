import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError, loadConfig } from '../config.ts';
import { homeWriteProblem } from '../home.ts';
import { askSupervisor, SupervisorUnreachable, type ServerInfo } from './control.ts';
import { assertMayOpen } from './database.ts';
import { createInstanceFolders, instanceOf, logFile, type Instance, type OtherServer } from './instance.ts';
import { CONTROL_VERSION, readLiveState } from './instance-state.ts';
import { readLock } from './life-lock.ts';
import { lastLines, openLog } from './log-file.ts';
import { stopInstance } from './stop-server.ts';
import { EXIT_ALREADY_RUNNING, toArgument, type SupervisorOptions } from './supervisor-options.ts';
import { temporalVersion } from './temporal-command.ts';
import type { Environment } from './worker-environment.ts';
import { assertOwnHome } from './whose-home.ts';

export interface EnsureServerOptions {
  readonly home: string;
  /** Hears what is done and what is worth knowing, a line each. */
  readonly log: (line: string) => void;
  /** How many workers. Default: as many as run, or 2. */
  readonly workers?: number;
  /** Run workers for this server instead of bringing up the embedded one. */
  readonly other?: OtherServer;
  /** Environment of the workers. Default: this process's. Workers that have another one are replaced. */
  readonly environment?: Environment;
  /** For whoever only needs a server: leave running workers with the environment they have. Default false. */
  readonly keepEnvironment?: boolean;
  /** What runs a worker. Default: node with the built worker. */
  readonly workerCommand?: readonly string[];
  /** Which build that is; workers of another one are replaced. Default: dist/build-id. */
  readonly buildId?: string;
  /** Path of the Temporal CLI. Default: what the set-up found. */
  readonly temporalCli?: string;
  /** How long a worker may finish what it does when it is told to end. Default 20 s; fixed when the supervisor starts. */
  readonly graceMs?: number;
  /** How long to wait in all. Default 120 s. */
  readonly timeoutMs?: number;
}

const DEFAULT_WORKERS = 2;
// Above what a worker gives its own activities on SIGTERM.
const DEFAULT_GRACE_MS = 20_000;
const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Brings up what is missing and resolves once the server answers and every worker is ready, of this build and with this
 * environment. May be called by any number of processes at once: there is one supervisor an instance.
 */
export async function ensureServer(options: EnsureServerOptions): Promise<ServerInfo> {
  const instance = instanceOf(resolve(options.home), options.other);
  const deadline = performance.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const problem = homeWriteProblem(instance.home);
  if (problem !== undefined)
    throw new ConfigError(`${problem}, and everything of a run is kept there. Make it writable, or set ERRAND_HOME.`);
  createInstanceFolders(instance);
  for (;;) {
    const info = await tryOnce(options, instance, deadline);
    if (info !== undefined) return info;
    if (performance.now() > deadline)
      throw new Error(
        `The supervisor could not be reached; see ${logFile(instance, 'supervisor')}, or run "errand down" and try again.`,
      );
    await sleep(50);
  }
}

/** The installed tree: the folder with package.json, dist and scripts. */
const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

async function tryOnce(
  options: EnsureServerOptions,
  instance: Instance,
  deadline: number,
): Promise<ServerInfo | undefined> {
  assertOwnHome(instance.home);
  const state = readLiveState(instance);
  // It may have taken the lock and not yet written its state, or be on its way out: look again soon.
  if (state === undefined && readLock(instance.lock)) return undefined;
  if (state === undefined) {
    await startSupervisor(options, instance, deadline);
    return undefined;
  }
  if (state.controlVersion !== CONTROL_VERSION) {
    options.log('replacing the supervisor of another version of errand');
    await stopInstance({ instance, log: options.log });
    return undefined;
  }
  return askUnlessGone(options, state.control, deadline);
}

async function askUnlessGone(
  options: EnsureServerOptions,
  control: string,
  deadline: number,
): Promise<ServerInfo | undefined> {
  try {
    return await askSupervisor({
      control,
      request: toRequest(options),
      log: options.log,
      timeoutMs: Math.max(1, deadline - performance.now()),
    });
  } catch (error) {
    if (error instanceof SupervisorUnreachable) return undefined;
    throw error;
  }
}

function toRequest(options: EnsureServerOptions) {
  return {
    type: 'ensure' as const,
    ...workerBuild(options),
    count: options.workers,
    environment: options.keepEnvironment ? undefined : { ...(options.environment ?? process.env) },
  };
}

function workerBuild({ workerCommand, buildId }: EnsureServerOptions): { command: readonly string[]; buildId: string } {
  const command = workerCommand ?? [process.execPath, join(PROJECT, 'dist', 'worker.js')];
  return { command, buildId: buildId ?? readBuildId() };
}

function readBuildId(): string {
  const file = join(PROJECT, 'dist', 'build-id');
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  throw new Error(`${file} is missing: errand is not built. Run "npm run build" in ${PROJECT}.`);
}

// Returns once a supervisor holds the instance, this one or another that was quicker.
async function startSupervisor(options: EnsureServerOptions, instance: Instance, deadline: number): Promise<void> {
  const supervisor = toSupervisorOptions(options, instance);
  // Asked here too, so that the answer comes before anything is started; the supervisor asks again each time.
  if (supervisor.cli !== undefined)
    assertMayOpen({ database: instance.database, version: temporalVersion(supervisor.cli) });
  const child = spawnSupervisor(options, instance, supervisor);
  let ending: string | undefined;
  child.once('error', (error) => (ending = error.message));
  child.once(
    'exit',
    (code, signal) => (ending = code === EXIT_ALREADY_RUNNING ? '' : `it ended by ${signal ?? `code ${code}`}`),
  );
  while (ending === undefined && !readLiveState(instance) && performance.now() < deadline) await sleep(20);
  if (ending) throw new Error(`The supervisor did not start: ${ending}. ${supervisorHint(instance)}`);
}

function supervisorHint(instance: Instance): string {
  const log = logFile(instance, 'supervisor');
  return `Its log, ${log}, ends:\n${lastLines(log, 5)}`;
}

// Its own session, nothing of this terminal: it goes on when the terminal closes.
function spawnSupervisor(
  options: EnsureServerOptions,
  instance: Instance,
  supervisor: SupervisorOptions,
): ChildProcess {
  const log = openLog(logFile(instance, 'supervisor'));
  const script = join(PROJECT, 'dist', 'server', 'supervisor.js');
  try {
    const child = spawn(process.execPath, [script, toArgument(supervisor)], {
      detached: true,
      cwd: instance.folder,
      env: { ...(options.environment ?? process.env) },
      stdio: ['ignore', log, log],
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

function toSupervisorOptions(options: EnsureServerOptions, { home }: Instance): SupervisorOptions {
  const { other, workers = DEFAULT_WORKERS, graceMs = DEFAULT_GRACE_MS } = options;
  const cli = other ? undefined : (options.temporalCli ?? findTemporalCli(options.environment ?? process.env));
  return { home, other, cli, graceMs, count: workers, ...workerBuild(options) };
}

function findTemporalCli(env: Environment): string {
  const { value } = loadConfig({ env }).tools.temporal;
  if (value.path !== undefined && value.problem === undefined) return value.path;
  const reason = value.problem ?? 'none was found by the set-up';
  throw new Error(
    `There is no Temporal CLI: ${reason}. Run "node scripts/setup.mjs" in ${PROJECT}, or set ERRAND_TEMPORAL_CLI.`,
  );
}

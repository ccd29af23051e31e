import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connect, newRunId, startRun } from '../src/client.ts';
import type { TemporalClient } from '../src/client.ts';
import { loadConfig } from '../src/config.ts';
import { rootPolicy } from '../src/policy/defaults.ts';
import { ensureServer, stopServer } from '../src/server/index.ts';
import { startSimulator, toMarker } from '../src/simulator/index.ts';
import type { Simulator } from '../src/simulator/index.ts';

/**
 * Ours beside a floor, in one run: the floor is a bare workflow on the same server with two activities a turn, one
 * streamed call to the same simulator with one synced append, and one that does nothing. Prints ratios; the absolute
 * figures belong to the machine.
 */
const PROJECT = resolve(import.meta.dirname, '..');
const ROUNDS = 5;
const LONG_RUN_TURNS = 100;
const MANY_RUNS = 50;
const MANY_RUNS_TURNS = 20;

interface Bench {
  readonly home: string;
  readonly folder: string;
  readonly workspace: string;
  readonly simulator: Simulator;
  readonly temporal: TemporalClient;
}

const bench = await setUp();
const workers = [await startOurs(bench), await startFloor(bench)];
try {
  await compareOneRun(bench);
  await compareManyRuns(bench);
  await showHistory(bench);
} finally {
  for (const worker of workers) await end(worker);
  await bench.temporal.close();
  await bench.simulator.close();
  await stopServer({ home: bench.home, log: () => undefined });
  await rm(bench.folder, { recursive: true, force: true });
}

async function compareOneRun(bench: Bench): Promise<void> {
  await runOurs(bench, 5);
  await runFloor(bench, 5);
  const ours: number[] = [];
  const floor: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    ours.push((await timed(() => runOurs(bench, LONG_RUN_TURNS))) / LONG_RUN_TURNS);
    floor.push((await timed(() => runFloor(bench, LONG_RUN_TURNS))) / LONG_RUN_TURNS);
  }
  const ratio = median(ours.map((ms, index) => ms / (floor[index] ?? ms)));
  print('one run, 100 turns, ms a turn', median(ours).toFixed(1), median(floor).toFixed(1), ratio, '≤ 1.3');
}

async function compareManyRuns(bench: Bench): Promise<void> {
  const turns = MANY_RUNS * MANY_RUNS_TURNS;
  const all = (run: () => Promise<unknown>) => Promise.all(Array.from({ length: MANY_RUNS }, run));
  const ours = turns / ((await timed(() => all(() => runOurs(bench, MANY_RUNS_TURNS)))) / 1000);
  const floor = turns / ((await timed(() => all(() => runFloor(bench, MANY_RUNS_TURNS)))) / 1000);
  print('50 runs at once, 20 turns each, turns/s', ours.toFixed(1), floor.toFixed(1), ours / floor, '≥ 0.6');
}

async function showHistory(bench: Bench): Promise<void> {
  const sizes = new Map<number, { bytes: number; events: number }>();
  for (const turns of [9, 10, 299, 300]) sizes.set(turns, await historyOf(bench, turns));
  for (const turn of [10, 300]) {
    const [before, after] = [sizes.get(turn - 1), sizes.get(turn)];
    if (!before || !after) continue;
    const bytes = after.bytes - before.bytes;
    console.log(`history of turn ${turn}: ${bytes} bytes, ${after.events - before.events} events (aim ≤ 2500, ≤ 13)`);
  }
}

async function historyOf(bench: Bench, turns: number): Promise<{ bytes: number; events: number }> {
  const runId = await runOurs(bench, turns);
  const description = await bench.temporal.client.workflow.getHandle(runId).describe();
  return { bytes: description.historySize ?? 0, events: description.historyLength };
}

async function runOurs(bench: Bench, turns: number): Promise<string> {
  const runId = newRunId('bench');
  const { client } = bench.temporal;
  await startRun(bench.temporal, {
    home: bench.home,
    runId,
    prompt: toMarker('tool-loop', { turns: String(turns), tool: 'read', path: 'notes.txt' }),
    workspace: bench.workspace,
    model: 'sim-1',
    policy: rootPolicy({ workspace: bench.workspace, models: ['sim-1'], approvals: 'deny', maxTurns: turns + 5 }),
    outageMs: 60_000,
    warn: () => undefined,
  });
  await client.workflow.getHandle(runId).result();
  return runId;
}

async function runFloor(bench: Bench, turns: number): Promise<void> {
  const prompt = toMarker('tool-loop', {
    turns: String(turns),
    tool: 'read',
    path: 'notes.txt',
    n: String(Math.random()),
  });
  await bench.temporal.client.workflow.execute('floor', {
    args: [{ turns, prompt }],
    taskQueue: 'floor',
    workflowId: `floor-${Math.random().toString(36).slice(2)}`,
  });
}

async function setUp(): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'errand-bench-'));
  const [home, workspace] = [join(folder, 'home'), join(folder, 'workspace')];
  await mkdir(home, { mode: 0o700 });
  await mkdir(workspace);
  await mkdir(join(folder, 'floor'));
  await writeFile(join(workspace, 'notes.txt'), 'a line of notes\n'.repeat(20));
  const simulator = await startSimulator({ keepMessages: false });
  const { address } = await ensureServer({ home, workers: 0, log: () => undefined });
  const temporal = await connect(loadConfig({ env: { ERRAND_HOME: home, TEMPORAL_ADDRESS: address } }).temporal);
  return { folder, home, workspace, simulator, temporal };
}

function startOurs({ home, temporal, simulator }: Bench): Promise<ChildProcess> {
  return startWorker([join(PROJECT, 'dist/worker.js')], {
    ERRAND_HOME: home,
    TEMPORAL_ADDRESS: temporal.address,
    ANTHROPIC_BASE_URL: simulator.url,
    ANTHROPIC_API_KEY: 'bench',
  });
}

function startFloor({ folder, temporal, simulator }: Bench): Promise<ChildProcess> {
  return startWorker([join(PROJECT, 'bench/floor/worker.mjs')], {
    FLOOR_ADDRESS: temporal.address,
    FLOOR_QUEUE: 'floor',
    FLOOR_FOLDER: join(folder, 'floor'),
    FLOOR_MODEL_URL: simulator.url,
    FLOOR_RESULT: Array.from({ length: 20 }, (_, index) => `${String(index + 1).padStart(6)}\ta line of notes`).join(
      '\n',
    ),
  });
}

async function startWorker(command: readonly string[], env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const child = spawn(process.execPath, command, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function print(what: string, ours: string, floor: string, ratio: number, aim: string): void {
  console.log(`${what}: ours ${ours}, floor ${floor}, ratio ${ratio.toFixed(2)} (aim ${aim})`);
}

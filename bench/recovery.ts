import { parseArgs } from 'node:util';
import { toScriptPrompt } from '../src/simulator/index.ts';
import { onWorkerDeath } from '../src/server/worker-death.ts';
import { BenchHome, median, until, type BenchWorker } from './bench-home.ts';

/*
 * Time from `kill -9` of a worker to the next attempt at what it was doing, beside the time a bare worker needs to
 * start. npx vite-node bench/recovery.ts -- --repeats 10
 *
 * Where nothing but a time-out of about ten seconds brings the work back, several runs wait for it at once: each has a
 * heartbeat or a workflow task of its own, with its own clock, on the worker that dies.
 */

const { values } = parseArgs({
  options: { repeats: { type: 'string', default: '10' } },
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
});

interface Case {
  readonly workers: 1 | 2;
  readonly place: 'activity' | 'workflow task';
  readonly isTold: boolean;
}

const repeats = Number(values.repeats);

const CASES: readonly Case[] = ([2, 1] as const).flatMap((workers) =>
  (['activity', 'workflow task'] as const).flatMap((place) =>
    [true, false].map((isTold) => ({ workers, place, isTold })),
  ),
);

/** Runs that wait for one death; few, so that coming back all at once does not become the thing that is measured. */
const RUNS_A_DEATH = 4;
/** A stopped worker has a few polls open: so long it may take until a task has gone to each. */
const TASKS_WITHIN_MS = 1_000;

const startsMs: number[] = [];
const bench = await BenchHome.open();
try {
  const rows: string[][] = [];
  for (const one of CASES) {
    const isQuick = one.isTold && one.place === 'activity';
    const times: number[] = [];
    while (times.length < repeats) {
      const left = repeats - times.length;
      times.push(...(await measure(one, isQuick ? 1 : Math.min(left, RUNS_A_DEATH))));
    }
    rows.push([one.place, String(one.workers), one.isTold ? 'told' : 'not told', ...numbers(times)]);
    console.error(rows.at(-1)?.join(' · '));
  }
  rows.push(['a bare worker starts', '', '', ...numbers(startsMs)]);
  printTable(['killed in', 'workers', 'server', 'median ms', 'from', 'to', 'n'], rows);
} finally {
  await bench.close();
}

/** One kill; answers how long the work of each run that was hit lay still. */
async function measure({ workers, place, isTold }: Case, runs: number): Promise<number[]> {
  for (const worker of [...bench.workers].slice(workers)) await bench.endWorker(worker);
  while (bench.workers.size < workers) startsMs.push((await bench.startWorker()).startMs);
  const started = await Promise.all(Array.from({ length: runs }, () => startSilentRun()));
  const { atMs, identity, hit } =
    place === 'activity' ? await killInActivity(started) : await killInWorkflowTask(started);
  if (hit.length === 0)
    throw new Error('the worker that died had nothing to do: the machine is too busy to measure on');
  // What the supervisor does: tell the server and start another worker, at the same time.
  const told = isTold ? tell(identity) : undefined;
  const next = bench.startWorker().then(({ startMs }) => startsMs.push(startMs));
  const resume = (runId: string) => (place === 'activity' ? nextAttempt(runId) : nextTask(runId, identity));
  const resumedMs = await Promise.all(hit.map(resume));
  await Promise.all([told, next]);
  await Promise.all(started.map((runId) => bench.client.workflow.getHandle(runId).terminate()));
  return resumedMs.map((ms) => ms - atMs);
}

/** A run whose model call never ends. */
async function startSilentRun(): Promise<string> {
  const runId = await bench.run(toScriptPrompt([{ text: 'x', fault: { silence: 'message_start' } }], 'silent'));
  await until('the model call to be under way', () => attemptsOf(runId).then(([one]) => one?.identity));
  return runId;
}

interface Kill {
  readonly atMs: number;
  readonly identity: string;
}

/** A death and the runs whose work it took. */
type Hit = Kill & { readonly hit: readonly string[] };

async function killInActivity(runs: readonly string[]): Promise<Hit> {
  const held = await Promise.all(
    runs.map(async (runId) => ({ runId, identity: (await attemptsOf(runId))[0]?.identity })),
  );
  const worker = workerOf(held[0]?.identity);
  const hit = held.filter(({ identity }) => identity === worker.identity).map(({ runId }) => runId);
  return { ...(await kill(worker)), hit };
}

// A stopped worker's polls still take the next tasks: the server counts them as begun.
async function killInWorkflowTask(runs: readonly string[]): Promise<Hit> {
  const tasks = await Promise.all(runs.map(async (runId) => ({ runId, tasks: await workflowTasks(runId) })));
  const worker = workerOf(tasks[0]?.tasks.at(-1)?.identity);
  const its = tasks.filter((one) => one.tasks.at(-1)?.identity === worker.identity);
  worker.process.kill('SIGSTOP');
  const hit = await Promise.all(its.map((one) => giveTask(one.runId, one.tasks.length)));
  return { ...(await kill(worker)), hit: hit.filter((runId) => runId !== undefined) };
}

/** Undefined where no poll was left to take the task. */
async function giveTask(runId: string, before: number): Promise<string | undefined> {
  await bench.client.workflow.getHandle(runId).signal('wake up');
  const started = until(
    'the stopped worker to have a workflow task',
    async () => ((await hasStartedTask(runId, before)) ? runId : undefined),
    TASKS_WITHIN_MS,
  );
  return started.catch(() => undefined);
}

async function kill(worker: BenchWorker): Promise<Kill> {
  await bench.endWorker(worker);
  return { atMs: Date.now(), identity: worker.identity };
}

function workerOf(identity: string | undefined): BenchWorker {
  const worker = [...bench.workers].find((one) => one.identity === identity);
  if (!worker) throw new Error(`no worker ${identity} runs here`);
  return worker;
}

function tell(identity: string): Promise<void> {
  const { home, address, environment } = bench;
  return onWorkerDeath({ identity, cause: 'was killed', home, address, environment, log: () => undefined });
}

interface Attempt {
  readonly attempt: number;
  readonly identity: string;
  readonly startedMs: number;
}

/** Activity attempts that the server counts as begun. */
async function attemptsOf(runId: string): Promise<readonly Attempt[]> {
  const { raw } = await bench.client.workflow.getHandle(runId).describe();
  const started = (raw.pendingActivities ?? []).filter(({ state, activityId }) => state === 2 && activityId === 't1');
  return started.map(({ attempt, lastWorkerIdentity, lastStartedTime }) => ({
    attempt: attempt ?? 0,
    identity: lastWorkerIdentity ?? '',
    startedMs: toMs(lastStartedTime),
  }));
}

async function nextAttempt(runId: string): Promise<number> {
  return until('the next attempt', async () => (await attemptsOf(runId)).find(({ attempt }) => attempt > 1)?.startedMs);
}

/** Workflow tasks that the history shows as begun: whose, and when. */
async function workflowTasks(runId: string): Promise<readonly Omit<Attempt, 'attempt'>[]> {
  const { events = [] } = await bench.client.workflow.getHandle(runId).fetchHistory();
  return (events ?? []).flatMap(({ workflowTaskStartedEventAttributes: started, eventTime }) =>
    started ? [{ identity: started.identity ?? '', startedMs: toMs(eventTime) }] : [],
  );
}

async function hasStartedTask(runId: string, before: number): Promise<boolean> {
  const { raw } = await bench.client.workflow.getHandle(runId).describe();
  return raw.pendingWorkflowTask?.state === 2 || (await workflowTasks(runId)).length > before;
}

async function nextTask(runId: string, dead: string): Promise<number> {
  return until('another worker to take the task', async () => {
    const tasks = await workflowTasks(runId);
    const last = tasks.at(-1);
    return last !== undefined && last.identity !== dead ? last.startedMs : undefined;
  });
}

function toMs(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1000 + Math.floor((time?.nanos ?? 0) / 1e6);
}

function numbers(times: readonly number[]): string[] {
  return [median(times), Math.min(...times), Math.max(...times)]
    .map((ms) => String(Math.round(ms)))
    .concat(String(times.length));
}

function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  console.log([line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n'));
}

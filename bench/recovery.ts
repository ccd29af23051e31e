import { parseArgs } from 'node:util';
import { toScriptPrompt } from '../src/simulator/index.ts';
import { onWorkerDeath } from '../src/server/worker-death.ts';
import { BenchHome, median, until, type BenchWorker } from './bench-home.ts';

/*
 * Time from `kill -9` of a worker to the next attempt at what it was doing, beside the time a bare worker needs to
 * start. npx vite-node bench/recovery.ts -- --repeats 10 --slow-repeats 3
 */

const { values } = parseArgs({
  options: { repeats: { type: 'string', default: '10' }, 'slow-repeats': { type: 'string', default: '3' } },
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
});

interface Case {
  readonly workers: 1 | 2;
  readonly place: 'activity' | 'workflow task';
  readonly isTold: boolean;
}

const CASES: readonly Case[] = ([2, 1] as const).flatMap((workers) =>
  (['activity', 'workflow task'] as const).flatMap((place) =>
    [true, false].map((isTold) => ({ workers, place, isTold })),
  ),
);

const startsMs: number[] = [];
const bench = await BenchHome.open();
try {
  const rows: string[][] = [];
  for (const one of CASES) {
    const isQuick = one.isTold && one.place === 'activity';
    const times: number[] = [];
    for (let left = Number(isQuick ? values.repeats : values['slow-repeats']); left > 0; left--) {
      times.push(await measure(one));
    }
    rows.push([one.place, String(one.workers), one.isTold ? 'told' : 'not told', ...numbers(times)]);
    console.error(rows.at(-1)?.join(' · '));
  }
  rows.push(['a bare worker starts', '', '', ...numbers(startsMs)]);
  printTable(['killed in', 'workers', 'server', 'median ms', 'from', 'to', 'n'], rows);
} finally {
  await bench.close();
}

/** One kill; answers how long the work lay still. */
async function measure({ workers, place, isTold }: Case): Promise<number> {
  for (const worker of [...bench.workers].slice(workers)) await bench.endWorker(worker);
  while (bench.workers.size < workers) startsMs.push((await bench.startWorker()).startMs);
  const runId = await bench.run(toScriptPrompt([{ text: 'x', fault: { silence: 'message_start' } }], 'silent'));
  await until('the model call to be under way', () => attemptsOf(runId).then(([one]) => one?.identity));
  const killed = place === 'activity' ? await killInActivity(runId) : await killInWorkflowTask(runId);
  // What the supervisor does: tell the server and start another worker, at the same time.
  const told = isTold ? tell(killed.identity) : undefined;
  const next = bench.startWorker().then(({ startMs }) => startsMs.push(startMs));
  const resumedMs = place === 'activity' ? await nextAttempt(runId) : await nextTask(runId, killed.identity);
  await Promise.all([told, next]);
  await bench.client.workflow.getHandle(runId).terminate();
  return resumedMs - killed.atMs;
}

interface Kill {
  readonly atMs: number;
  readonly identity: string;
}

async function killInActivity(runId: string): Promise<Kill> {
  const [held] = await attemptsOf(runId);
  return kill(workerOf(held?.identity));
}

// A stopped worker's poll still takes the next task: the server counts it as begun.
async function killInWorkflowTask(runId: string): Promise<Kill> {
  const worker = workerOf((await workflowTasks(runId)).at(-1)?.identity);
  const before = (await workflowTasks(runId)).length;
  worker.process.kill('SIGSTOP');
  await bench.client.workflow.getHandle(runId).signal('wake up');
  await until('the stopped worker to have a workflow task', async () =>
    (await hasStartedTask(runId, before)) ? true : undefined,
  );
  return kill(worker);
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

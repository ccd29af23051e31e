import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newRunId, startRun } from '../../src/client.ts';
import { rootPolicy } from '../../src/policy/defaults.ts';
import { TODOS_QUERY } from '../../src/protocol.ts';
import { subagentsFolder, transcriptFile } from '../../src/store/layout.ts';
import { readLastRecords } from '../../src/store/read.ts';
import { HISTORY_EVENTS, START_FILES, jobPrompt } from './job.ts';
import type { World } from './world.ts';

/** One job on its way. */
export interface JobRun {
  /** In the marker of each of its prompts. */
  readonly job: string;
  readonly runId: string;
  readonly stem: string;
  readonly workspace: string;
  readonly startedMs: number;
}

export async function startJob(world: World, job: string): Promise<JobRun> {
  const workspace = join(world.folder, 'workspaces', job);
  for (const [path, content] of Object.entries(START_FILES)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), content);
  }
  const runId = newRunId(job);
  const { stem } = await startRun(world.temporal, {
    home: world.home,
    runId,
    prompt: jobPrompt(job),
    workspace,
    model: 'sim-1',
    policy: rootPolicy({ workspace, models: ['sim-1'], approvals: 'deny' }),
    outageMs: 3600_000,
    historyEvents: HISTORY_EVENTS,
    warn: () => undefined,
  });
  return { job, runId, stem, workspace, startedMs: Date.now() };
}

/** Whether the run is closed, for the server as for the files. While the server is away: not yet. */
export async function isOver(world: World, run: JobRun): Promise<boolean> {
  const file = transcriptFile(world.home, { runId: run.runId, agentId: run.runId, transcript: run.stem });
  if (!existsSync(file) || !(await readLastRecords(file)).some(({ type }) => type === 'end')) return false;
  const description = await describe(world, run.runId);
  return description !== undefined && description !== 'RUNNING';
}

/** Status of a workflow; undefined while the server does not answer. */
export async function describe(world: World, workflowId: string): Promise<string | undefined> {
  try {
    return (await world.temporal.client.workflow.getHandle(workflowId).describe()).status.name;
  } catch {
    return undefined;
  }
}

/** When an agent heard that it is to stop, by its first workflow task after the server was told; undefined if it did not. */
export async function heardOfStopMs(world: World, workflowId: string): Promise<number | undefined> {
  const { events = [] } = await world.temporal.client.workflow.getHandle(workflowId).fetchHistory();
  const told = events?.findIndex((event) => event.workflowExecutionCancelRequestedEventAttributes) ?? -1;
  const heard = told < 0 ? undefined : events?.slice(told).find((event) => event.workflowTaskCompletedEventAttributes);
  return heard?.eventTime ? Number(heard.eventTime.seconds) * 1000 + (heard.eventTime.nanos ?? 0) / 1e6 : undefined;
}

/** The root's todo list, as its workflow has it; an error where it cannot tell. */
export async function todosOf(world: World, { runId }: JobRun): Promise<unknown> {
  return world.temporal.client.workflow.getHandle(runId).query<unknown>(TODOS_QUERY).catch(String);
}

/** Bytes of the run's transcripts: they grow when it moves. */
export function transcriptBytes(world: World, run: JobRun): number {
  const root = transcriptFile(world.home, { runId: run.runId, agentId: run.runId, transcript: run.stem });
  const folder = subagentsFolder(world.home, run.stem);
  const children = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.jsonl')) : [];
  return [root, ...children.map((name) => join(folder, name))]
    .filter((file) => existsSync(file))
    .reduce((sum, file) => sum + statSync(file).size, 0);
}

/** A job that has not moved for so long, with everything up, never will. */
const STUCK_MS = 150_000;

/** Answers which of them do not come to an end. */
export async function waitUntilOver(world: World, runs: readonly JobRun[]): Promise<string[]> {
  const waiting = new Set(runs);
  let bytes = -1;
  for (let movedMs = Date.now(); waiting.size > 0 && Date.now() - movedMs < STUCK_MS; await sleep(200)) {
    for (const run of waiting) if (await isOver(world, run)) waiting.delete(run);
    const now = [...waiting].reduce((sum, run) => sum + transcriptBytes(world, run), 0);
    if (now !== bytes) movedMs = Date.now();
    bytes = now;
  }
  return [...waiting].map(({ runId }) => `run ${runId} has not moved for ${STUCK_MS / 1000} s`);
}

/** Every file of a folder with its content. */
export function filesIn(folder: string): Record<string, string> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const pairs = found.map((entry) => {
    const file = join(entry.parentPath, entry.name);
    return [relative(folder, file), readFileSync(file, 'utf8')] as const;
  });
  return Object.fromEntries(pairs.toSorted(([a], [b]) => a.localeCompare(b)));
}

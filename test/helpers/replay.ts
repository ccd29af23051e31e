import { fileURLToPath } from 'node:url';
import type { Client } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { ReplayWorkerOptions } from '@temporalio/worker';
import { waitFor } from './wait.ts';

export const BUILT_BUNDLE = fileURLToPath(new URL('../../dist/workflow-bundle.js', import.meta.url));

type History = Awaited<ReturnType<ReturnType<Client['workflow']['getHandle']>['fetchHistory']>>;

/** A history and whose it is. */
export interface KeptHistory {
  /** `<workflow id> (<run id>)` or a file name: named when the replay fails. */
  readonly name: string;
  readonly history: unknown;
}

/** Replays histories with the workflow code that is built; answers what went wrong with which. */
export async function replayProblems(
  histories: readonly KeptHistory[],
  workflowBundle: ReplayWorkerOptions['workflowBundle'] = { codePath: BUILT_BUNDLE },
): Promise<string[]> {
  if (histories.length === 0) return [];
  installQuietRuntime();
  const named = histories.map(({ name, history }) => ({ workflowId: name, history }));
  const problems: string[] = [];
  const results = Worker.runReplayHistories({ workflowBundle, replayName: 'replay' }, named);
  for await (const { workflowId, error } of results) {
    if (error) problems.push(`${workflowId}: ${error.name}: ${error.message}`);
  }
  return problems;
}

/** A history as it is kept in a file: plain JSON.stringify would not replay. */
export function toHistoryJson(history: History): unknown {
  return JSON.parse(historyToJSON(history));
}

/**
 * Every history of a task queue: root agents and children, each run of those that continued as new. The server lists
 * with a delay, so this waits until it names whatever one history says of another, and `started`.
 */
export async function historiesOf(
  client: Client,
  taskQueue: string,
  started: readonly string[],
): Promise<readonly KeptHistory[]> {
  const known = new Map<string, History>();
  await waitFor(`the server to list all runs of ${taskQueue}`, async () => {
    await fetchNew(client, taskQueue, known);
    const ids = new Set([...known.keys()].map((key) => key.split(' ')[0]));
    const named = [...known.values()].flatMap(runsNamedIn);
    return started.every((id) => ids.has(id)) && named.every((key) => known.has(key));
  });
  return [...known].map(([name, history]) => ({ name, history: toHistoryJson(history) }));
}

async function fetchNew(client: Client, taskQueue: string, known: Map<string, History>): Promise<void> {
  for await (const { workflowId, runId } of client.workflow.list({ query: `TaskQueue = "${taskQueue}"` })) {
    const key = keyOf(workflowId, runId);
    if (!known.has(key)) known.set(key, await client.workflow.getHandle(workflowId, runId).fetchHistory());
  }
}

/** Children that were started, and the runs before and after in a chain of continue-as-new. */
function runsNamedIn(history: History): string[] {
  const ownId = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? '';
  return (history.events ?? []).flatMap((event) => {
    const before = event.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    const after = event.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
    const child = event.childWorkflowExecutionStartedEventAttributes?.workflowExecution;
    return [
      ...(before ? [keyOf(ownId, before)] : []),
      ...(after ? [keyOf(ownId, after)] : []),
      ...(child?.workflowId && child.runId ? [keyOf(child.workflowId, child.runId)] : []),
    ];
  });
}

function keyOf(workflowId: string, runId: string): string {
  return `${workflowId} (${runId})`;
}

let isInstalled = false;

/** Once a process, before the first worker: the SDK's own log would drown the tests' output, and a violation is in the result anyway. */
export function installQuietRuntime(): void {
  if (isInstalled) return;
  isInstalled = true;
  Runtime.install({ logger: quietLogger(), telemetryOptions: { logging: { forward: {}, filter: 'OFF' } } });
}

export function quietLogger(): DefaultLogger {
  return new DefaultLogger('ERROR', () => undefined);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowIdConflictPolicy, WorkflowIdReusePolicy } from '@temporalio/client';
import { homeId } from '../home.ts';
import { RECONCILE_WORKFLOW, reconcileWorkflowId, taskQueue } from '../protocol.ts';
import type { NamedServer } from './fate.ts';
import { findLostAgents } from './lost-agents.ts';
import { RECENT_RUNS } from './open-agents.ts';

export interface WatchOptions {
  readonly home: string;
  readonly server: NamedServer;
  readonly everyMs: number;
  readonly signal: AbortSignal;
  /** Hears why a look failed; the next one comes in any case. */
  readonly warn: (error: unknown) => void;
}

/**
 * Looks for agents that were closed without an ending, at once and then again and again, and starts their
 * reconciliation when there are any. Looking costs nothing in history; every worker of the home may do it.
 */
export async function watchForLost({ home, server, everyMs, signal, warn }: WatchOptions): Promise<void> {
  while (!signal.aborted) {
    await lookOnce(home, server).catch(warn);
    await sleep(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

async function lookOnce(home: string, server: NamedServer): Promise<void> {
  const lost = await findLostAgents(home, server, RECENT_RUNS);
  if (lost.length === 0) return;
  const id = homeId(home);
  await server.client.workflow.start(RECONCILE_WORKFLOW, {
    args: [],
    workflowId: reconcileWorkflowId(id),
    taskQueue: taskQueue(id),
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    workflowTaskTimeout: 10_000,
    staticSummary: `end ${lost.length} lost agents`,
  });
}

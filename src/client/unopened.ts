import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { TRANSCRIPT_MEMO } from '../protocol.ts';

/** A run as the server alone knows it: one that no worker has taken up yet has no file. */
export interface UnopenedRun {
  readonly runId: string;
  readonly stem: string;
  /** Task queue: whose run it is, since each home has its own. */
  readonly queue: string;
  /** `running` and the server's other words, in lower case. */
  readonly status: string;
  readonly startedAt: string;
}

/** Undefined for an id that is no run's. */
export async function findUnopened(client: Client, runId: string): Promise<UnopenedRun | undefined> {
  try {
    const { memo, status, startTime, taskQueue } = await client.workflow.getHandle(runId).describe();
    const stem = memo?.[TRANSCRIPT_MEMO];
    if (typeof stem !== 'string') return undefined;
    return { runId, stem, queue: taskQueue, status: status.name.toLowerCase(), startedAt: startTime.toISOString() };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Task queue of any workflow; undefined when the server knows none with this id. */
export async function findQueue(client: Client, workflowId: string): Promise<string | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).taskQueue;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

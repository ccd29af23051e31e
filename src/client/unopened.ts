import { WorkflowNotFoundError, type Client, type WorkflowExecutionDescription } from '@temporalio/client';
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
  const found = await describeIfThere(client, runId);
  const stem = found?.memo?.[TRANSCRIPT_MEMO];
  if (found === undefined || typeof stem !== 'string') return undefined;
  const { status, startTime, taskQueue } = found;
  return { runId, stem, queue: taskQueue, status: status.name.toLowerCase(), startedAt: startTime.toISOString() };
}

/** Task queue of any workflow; undefined when the server knows none with this id. */
export async function findQueue(client: Client, workflowId: string): Promise<string | undefined> {
  return (await describeIfThere(client, workflowId))?.taskQueue;
}

async function describeIfThere(client: Client, workflowId: string): Promise<WorkflowExecutionDescription | undefined> {
  try {
    return await client.workflow.getHandle(workflowId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

import { randomUUID } from 'node:crypto';
import { WorkflowNotFoundError, WorkflowUpdateFailedError, type Client } from '@temporalio/client';
import { TRANSCRIPT_MEMO } from './start-run.ts';
import { STATUS_QUERY, STEER_UPDATE, type AgentState, type SteeringMessage } from '../protocol.ts';

/** What became of a request to a run: taken, or why not. */
export type TalkOutcome =
  | { readonly done: true }
  /** `isUnknown`: the server has no such run, or no longer. */
  | { readonly done: false; readonly reason: string; readonly isUnknown: boolean };

/** Stem of the files of a run that the server knows: a run that no worker has taken up yet has no file. */
export async function findStem(client: Client, runId: string): Promise<string | undefined> {
  try {
    const { memo } = await client.workflow.getHandle(runId).describe();
    const stem = memo?.[TRANSCRIPT_MEMO];
    return typeof stem === 'string' ? stem : undefined;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Asks a run, or one agent of it, to stop. An agent that has ended is left as it is. */
export async function requestCancel(client: Client, workflowId: string): Promise<TalkOutcome> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const { status } = await handle.describe();
    if (status.name !== 'RUNNING')
      return { done: false, isUnknown: false, reason: `had ended: ${status.name.toLowerCase()}` };
    await handle.cancel();
    return { done: true };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError)
      return { done: false, isUnknown: true, reason: 'is not known to the server' };
    throw error;
  }
}

/** Adds a user message at the agent's next turn; answers why when the agent does not take it. */
export async function steer(client: Client, workflowId: string, text: string): Promise<TalkOutcome> {
  const message: SteeringMessage = { id: `steer-${randomUUID()}`, text };
  const handle = client.workflow.getHandle(workflowId);
  try {
    await handle.executeUpdate<string, [SteeringMessage]>(STEER_UPDATE, { args: [message], updateId: message.id });
    return { done: true };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { done: false, isUnknown: false, reason: 'has ended' };
    if (!(error instanceof WorkflowUpdateFailedError)) throw error;
    return { done: false, isUnknown: false, reason: `refused the message: ${error.cause?.message ?? error.message}` };
  }
}

/** What the agent's workflow says of itself; needs a worker. */
export async function queryStatus(client: Client, workflowId: string): Promise<AgentState> {
  return client.workflow.getHandle(workflowId).query<AgentState>(STATUS_QUERY);
}

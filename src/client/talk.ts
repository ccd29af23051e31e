import { randomUUID } from 'node:crypto';
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client';
import { MAX_PROMPT_BYTES, STATUS_QUERY, STEER_UPDATE, type AgentState, type SteeringMessage } from '../protocol.ts';

/** What became of a request to a run: taken, or why not. */
export type TalkOutcome =
  | { readonly done: true }
  /** `isUnknown`: the server has no such run, or no longer. */
  | { readonly done: false; readonly reason: string; readonly isUnknown: boolean };

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

/** Longer than the server takes to give a task of a worker that died to another one. */
const STEER_WAITS_MS = 20_000;

const NOT_HEARD =
  'has not taken the message: no worker is at work on it (errand up starts workers). It may still be read when one is; ' +
  'errand logs shows whether it was';

/** Said here: what the server cannot carry never reaches the agent, which would refuse it in the same words. */
const TOO_LONG =
  `refused the message: steer takes up to ${MAX_PROMPT_BYTES} bytes; put longer text in a file of the workspace and ` +
  'name it';

/** Adds a user message at the agent's next turn; answers why when the agent does not take it. */
export async function steer(client: Client, workflowId: string, text: string): Promise<TalkOutcome> {
  if (Buffer.byteLength(text) > MAX_PROMPT_BYTES) return { done: false, isUnknown: false, reason: TOO_LONG };
  const message: SteeringMessage = { id: `steer-${randomUUID()}`, text };
  const handle = client.workflow.getHandle(workflowId);
  try {
    await client.withDeadline(Date.now() + STEER_WAITS_MS, () =>
      handle.executeUpdate<string, [SteeringMessage]>(STEER_UPDATE, { args: [message], updateId: message.id }),
    );
    return { done: true };
  } catch (error) {
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      return { done: false, isUnknown: false, reason: NOT_HEARD };
    if (error instanceof WorkflowNotFoundError) return { done: false, isUnknown: false, reason: 'has ended' };
    if (!(error instanceof WorkflowUpdateFailedError)) throw error;
    return { done: false, isUnknown: false, reason: `refused the message: ${error.cause?.message ?? error.message}` };
  }
}

/** What the agent's workflow says of itself; needs a worker. */
export async function queryStatus(client: Client, workflowId: string): Promise<AgentState> {
  return client.workflow.getHandle(workflowId).query<AgentState>(STATUS_QUERY);
}

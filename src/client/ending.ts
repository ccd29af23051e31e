import { WorkflowFailedError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { FAILURES, resultOfFailure, rootCauseOf } from '../failures.ts';
import type { AgentResult, AgentStatus } from '../protocol.ts';

/** How a run ended, as the server tells it. `result` is missing when the agent could not give one. */
export interface RunEnding {
  readonly status: AgentStatus;
  readonly result?: AgentResult;
  readonly error?: string;
}

/** Waits for the end of a run. Throws when the server cannot be reached: ask again. */
export async function awaitResult(client: Client, runId: string): Promise<RunEnding> {
  try {
    const result = (await client.workflow.getHandle(runId).result()) as AgentResult;
    return { status: result.status, result, ...(result.error !== undefined && { error: result.error }) };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { status: 'lost', error: 'the server does not know this run' };
    if (error instanceof WorkflowFailedError) return endingOf(error);
    throw error;
  }
}

function endingOf({ cause }: WorkflowFailedError): RunEnding {
  if (cause instanceof CancelledFailure) return { status: 'cancelled' };
  const result = resultOfFailure(cause);
  if (result) return { status: 'failed', result, error: result.error ?? rootCauseOf(cause) };
  const status = failureStatus(cause);
  return { status, error: rootCauseOf(cause) };
}

// Terminated, or timed out by a limit that someone else set: nobody wrote a terminal record.
function failureStatus(cause: Error | undefined): AgentStatus {
  const type = (cause as { type?: unknown } | undefined)?.type;
  if (type === FAILURES.agentRejected) return 'rejected';
  return cause?.name === 'TerminatedFailure' || cause?.name === 'TimeoutFailure' ? 'lost' : 'failed';
}

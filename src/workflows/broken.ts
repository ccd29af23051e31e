import { TemporalFailure } from '@temporalio/common';
import { CancellationScope, ContinueAsNew, DeterminismViolationError } from '@temporalio/workflow';
import { agentFailed, rootCauseOf } from '../failures.ts';
import type { AgentInput, AgentResult } from '../protocol.ts';
import { activities, closeOptions } from './proxies.ts';
import { toRef } from './ref.ts';

/*
 * A bug in workflow code. Left alone, it fails the workflow task, which the server then gives out again for ever: nobody
 * is told, and nothing ends. Here it becomes a failed agent with its reason, in a handler by way of `LiveState.break`. What
 * does not come through here is caught by the worker's `workflowFailureErrorTypes`.
 */

/** What people read of a bug. */
export function bugReason(bug: unknown): string {
  return `a bug in errand: ${rootCauseOf(bug)}`;
}

/**
 * Errors that say what they say to Temporal. Code that does not fit a history must stay a failed task: the right code
 * goes on from there, while a failed run would be lost.
 */
export function isForTemporal(error: unknown): boolean {
  return (
    error instanceof TemporalFailure || error instanceof ContinueAsNew || error instanceof DeterminismViolationError
  );
}

/** Closes the agent with the little that its input says, since its state may be what is broken. */
export async function endBroken(input: AgentInput, bug: unknown): Promise<never> {
  const error = bugReason(bug);
  const turn = typeof input.carried?.turn === 'number' ? input.carried.turn : 1;
  const request = {
    ref: toRef(input),
    status: 'failed' as const,
    turn,
    error,
    ...(input.carried === undefined && { unopened: input }),
  };
  const closing = await CancellationScope.nonCancellable(() =>
    activities.closeAgent.executeWithOptions(closeOptions(), [request]),
  );
  // Only an agent that closes as completed is ever told to go on.
  throw agentFailed({ ...(closing as AgentResult), error });
}

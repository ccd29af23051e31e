import {
  CancellationScope,
  CancelledFailure,
  ContinueAsNew,
  DeterminismViolationError,
  isCancellation,
  sleep,
} from '@temporalio/workflow';
import { agentFailed, endOfFailure, isRejection, rootCauseOf } from '../failures.ts';
import type { AgentInput, AgentResult, Closing } from '../protocol.ts';
import { atLimit } from './agent.ts';
import type { AgentSteps, Ending } from './agent.ts';
import { bugReason } from './broken.ts';
import { activities, closeOptions } from './proxies.ts';
import { showDetails } from './state.ts';
import type { LiveState } from './state.ts';

/**
 * Runs the loop to its one ending. Limits are outcomes and complete the workflow; `failed` fails it, so that the UI
 * shows it red; a cancellation closes it as Cancelled, after everything below it has closed. The terminal record has
 * the last word: a history that lost its last events (server set back) closes with what was recorded.
 */
export async function toItsEnd(
  input: AgentInput,
  state: LiveState,
  steps: AgentSteps,
  loop: (firstTurn: number) => Promise<Ending>,
): Promise<AgentResult> {
  for (let firstTurn = input.carried?.turn ?? 1; ;) {
    const ending = await endingOf(input, state, steps, () => loop(firstTurn));
    const closing = await close(input, state, ending);
    if (!('goesOn' in closing)) return asOutcome(closing);
    state.reopen();
    firstTurn = ending.turn + 1;
  }
}

function asOutcome(result: AgentResult): AgentResult {
  if (result.status === 'cancelled') throw new CancelledFailure('agent was cancelled');
  if (result.status === 'failed') throw agentFailed(result);
  return result;
}

async function endingOf(
  input: AgentInput,
  state: LiveState,
  steps: AgentSteps,
  loop: () => Promise<Ending>,
): Promise<Ending> {
  try {
    return await withinTime(input, state, steps, loop);
  } catch (error) {
    const isToPass = error instanceof ContinueAsNew || error instanceof DeterminismViolationError;
    if (isToPass || isRejection(error)) throw error;
    if (state.bug !== undefined && error === state.bug)
      return { status: 'failed', turn: state.turn, error: bugReason(error) };
    const recorded = endOfFailure(error);
    if (recorded) return { ...recorded, turn: state.turn };
    const isCancelled = CancellationScope.current().consideredCancelled || isCancellation(error);
    if (isCancelled) return { status: 'cancelled', turn: state.turn };
    return { status: 'failed', turn: state.turn, error: rootCauseOf(error) };
  }
}

/** The agent's wall clock. Hitting it stops what runs, waits for it, and leaves one turn for last words. */
async function withinTime(
  input: AgentInput,
  state: LiveState,
  steps: AgentSteps,
  loop: () => Promise<Ending>,
): Promise<Ending> {
  const work = new CancellationScope();
  const clock = new CancellationScope();
  let isTimeUp = false;
  const leftMs = Math.max(1, state.startedAtMs + input.limits.timeoutMs - Date.now());
  state.whenBroken(() => work.cancel());
  const alarm = clock
    .run(() => sleep(leftMs, { summary: 'time limit' }))
    .then(
      () => {
        isTimeUp = true;
        work.cancel();
      },
      () => undefined,
    );
  try {
    const ending = await work.run(loop);
    if (state.bug === undefined) return ending;
    throw state.bug;
  } catch (error) {
    if (state.bug !== undefined && !(error instanceof ContinueAsNew)) throw state.bug;
    if (!isTimeUp || CancellationScope.current().consideredCancelled || error instanceof ContinueAsNew) throw error;
    return await lastWords(state, steps);
  } finally {
    clock.cancel();
    await alarm;
  }
}

/** Without a reply the agent still ends as `timeout`, with whatever text it had. */
async function lastWords(state: LiveState, steps: AgentSteps): Promise<Ending> {
  try {
    return await atLimit(steps, state.turn + 1, 'timeout');
  } catch (error) {
    if (CancellationScope.current().consideredCancelled) throw error;
    return { status: 'timeout', turn: state.turn, error: `no last words: ${rootCauseOf(error)}` };
  }
}

/** Seals, writes the terminal record and ends open jobs; a cancellation cannot interrupt it. */
async function close(input: AgentInput, state: LiveState, { status, turn, error }: Ending): Promise<Closing> {
  state.isEnding = true;
  state.status = status;
  showDetails(state);
  state.attributes.update(state.snapshot());
  const request = {
    ref: state.ref,
    status,
    turn,
    ...state.unsealed(),
    usage: state.usage,
    ...(error !== undefined && { error }),
    ...(!state.isOpen && { unopened: input }),
  };
  return CancellationScope.nonCancellable(() => activities.closeAgent.executeWithOptions(closeOptions(), [request]));
}

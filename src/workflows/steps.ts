import {
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import { endOfFailure, isStoreTrouble, rootCauseOf } from '../failures.ts';
import type { AgentInput, Answer, Call, LastTurnReason, Reply } from '../protocol.ts';
import type { AgentSteps } from './agent.ts';
import { activities, effectOptions, lastWordsOptions, modelOptions, openOptions, readsOptions } from './proxies.ts';
import { indexOf, toSegments } from './segments.ts';
import type { Segment } from './segments.ts';
import { showDetails } from './state.ts';
import type { LiveState } from './state.ts';
import { runSubagent } from './subagent.ts';

/** The steps of the loop as Temporal runs them. */
export function createSteps(input: AgentInput, state: LiveState): AgentSteps {
  return {
    openTranscript: () => openTranscript(input, state),
    callModel: (turn, last) => callModel(input, state, turn, last),
    runCalls: (turn, calls) => runCalls(input, state, turn, calls),
    hasSteering: () => state.steering.length > 0,
    turnBoundary: (nextTurn) => turnBoundary(input, state, nextTurn),
  };
}

async function openTranscript(input: AgentInput, state: LiveState): Promise<void> {
  showDetails(state);
  await activities.openTranscript.executeWithOptions(openOptions(input), [{ input, branch: state.ref.branch }]);
  state.isOpen = true;
}

async function callModel(input: AgentInput, state: LiveState, turn: number, last?: LastTurnReason): Promise<Reply> {
  state.turn = turn;
  if (last) state.isEnding = true;
  showDetails(state);
  const options = last === 'timeout' ? lastWordsOptions(input, turn) : modelOptions(input, turn);
  const unsealed = state.unsealed();
  const request = { ref: state.ref, turn, ...unsealed, ...(last && { last }) };
  const reply = await activities.callModel.executeWithOptions(options, [request]);
  state.noteSealed(unsealed, reply.unsaid);
  state.noteReply(reply);
  return reply;
}

/** Segments run one after another, so that a read after an edit sees the edit. */
async function runCalls(input: AgentInput, state: LiveState, turn: number, calls: readonly Call[]): Promise<void> {
  for (const segment of toSegments(calls)) {
    const answers = await runSegment(input, state, turn, segment);
    state.answers = [...state.answers, ...answers];
    throwIfCancelled();
  }
}

async function runSegment(
  input: AgentInput,
  state: LiveState,
  turn: number,
  segment: Segment,
): Promise<readonly Answer[]> {
  if (segment.kind === 'task') return runTasks(input, state, segment.calls);
  state.lastStep = segment.calls.map((call) => call.summary).join(' · ');
  showDetails(state);
  try {
    await runInActivity(input, state, turn, segment);
    return [];
  } catch (error) {
    const trouble = activityTrouble(error);
    return segment.calls.map(({ callId }) => ({ callId, error: trouble }));
  }
}

async function runInActivity(input: AgentInput, state: LiveState, turn: number, segment: Segment): Promise<void> {
  const [first] = segment.calls;
  const request = { ref: state.ref, turn, calls: segment.calls.map(indexOf) };
  if (segment.kind === 'effect' && first) {
    await activities.runTool.executeWithOptions(effectOptions(input, first), [request]);
  } else {
    await activities.runTools.executeWithOptions(readsOptions(input, segment.calls), [request]);
  }
}

/** Children of one segment run side by side; all have settled before the turn goes on. */
async function runTasks(input: AgentInput, state: LiveState, calls: readonly Call[]): Promise<readonly Answer[]> {
  const settled = await Promise.allSettled(calls.map((call) => runTask(input, state, call)));
  const answers = settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  const failure = settled.find((outcome) => outcome.status === 'rejected');
  if (failure) {
    state.answers = [...state.answers, ...answers];
    throw failure.reason;
  }
  return answers;
}

async function runTask(input: AgentInput, state: LiveState, call: Call): Promise<Answer> {
  const { task } = call;
  if (!task) return { callId: call.callId, error: 'the call names no agent; give it again' };
  state.childStarted(task);
  showDetails(state);
  try {
    return await runSubagent(input, state.ref, call, task);
  } finally {
    state.childEnded(task);
    showDetails(state);
  }
}

/**
 * The only place to continue as new: no child is open, no activity runs, every handler has finished. A cancellation
 * that came with the last activity's completion would be dropped with the old run, so it is looked for right before.
 */
async function turnBoundary(input: AgentInput, state: LiveState, nextTurn: number): Promise<void> {
  showDetails(state);
  state.attributes.update(state.snapshot());
  if (!isHistoryLong(input)) return;
  await condition(allHandlersFinished);
  throwIfCancelled();
  await continueAsNew<(input: AgentInput) => Promise<unknown>>({ ...input, carried: state.carried(nextTurn) });
}

function isHistoryLong({ limits }: AgentInput): boolean {
  const { historyLength, continueAsNewSuggested } = workflowInfo();
  return continueAsNewSuggested || (limits.historyEvents !== undefined && historyLength >= limits.historyEvents);
}

/** In a scope that is being cancelled every failure counts as the cancellation, a dead worker's time-out included. */
function throwIfCancelled(): void {
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('agent is being cancelled');
}

/**
 * A failed activity is an answer for its calls. Without its files no agent can go on, one that has ended before does not
 * either, and anything else is a bug.
 */
function activityTrouble(error: unknown): string {
  throwIfCancelled();
  const isAnswer = error instanceof ActivityFailure && !isStoreTrouble(error) && endOfFailure(error) === undefined;
  if (!isAnswer) throw error;
  return `interrupted; effects unknown (${rootCauseOf(error)})`.slice(0, 300);
}

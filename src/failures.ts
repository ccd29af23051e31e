import type { TemporalFailure } from '@temporalio/common';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowFailure,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/common';
import { DEMO_MODEL_SERVER, modelServerWords } from './protocol.ts';
import type { AgentResult, AgentStatus } from './protocol.ts';

/**
 * Every failure type that crosses Temporal, and the functions that make and read them. Type names are kept for ever:
 * old histories hold them.
 */
export const FAILURES = {
  /** The agent ended `failed`; details: [AgentResult]. */
  agentFailed: 'Agent.Failed',
  /** The agent was never started: its input breaks a rule. */
  agentRejected: 'Agent.Rejected',
  /** The transcript has the agent's terminal record: nothing more is done; details: [AgentEnd]. */
  agentEnded: 'Agent.Ended',
  /** An update's handler has a bug. */
  handlerBroken: 'Handler.Broken',
  /** Another attempt has taken over; this one wrote nothing and did nothing. */
  attemptStale: 'Attempt.Stale',
  inputInvalid: 'Input.Invalid',
  storeUnavailable: 'Store.Unavailable',
  /** A stored file is damaged or of a newer version; nothing was overwritten. */
  storeInvalid: 'Store.Invalid',
  /** A file of the run is gone, emptied, damaged or another run's now, while the home is there. */
  storeGone: 'Store.Gone',
  /** The attempt's worker died; its supervisor said so. */
  workerLost: 'Worker.Lost',
  /** The attempt's worker is ending; another one goes on. */
  workerShutdown: 'Worker.Shutdown',
  modelRateLimited: 'Model.RateLimited',
  modelOverloaded: 'Model.Overloaded',
  modelUnreachable: 'Model.Unreachable',
  modelServer: 'Model.Server',
  modelCut: 'Model.Cut',
  modelIdle: 'Model.Idle',
  modelInvalid: 'Model.Invalid',
  modelAuth: 'Model.Auth',
  modelPermission: 'Model.Permission',
  modelNotFound: 'Model.NotFound',
  modelTooLarge: 'Model.TooLarge',
  modelBilling: 'Model.Billing',
  modelContextExceeded: 'Model.ContextExceeded',
  modelAborted: 'Model.Aborted',
  /** The worker asks another model server than the run was started with; nothing was recorded or sent. */
  modelOtherServer: 'Model.OtherServer',
} as const;

/**
 * Errors that fail a run when they leave workflow code, instead of having its task given out again for ever. Not `Error`:
 * that would also fail runs whose history does not fit the code, and those must wait for the right code.
 */
export const WORKFLOW_BUGS: readonly string[] = ['TypeError', 'RangeError', 'ReferenceError'];

/** Closes the workflow as Failed; the result travels in the details. */
export function agentFailed(result: AgentResult): ApplicationFailure {
  return ApplicationFailure.create({
    type: FAILURES.agentFailed,
    message: result.error ?? 'the agent failed',
    nonRetryable: true,
    details: [result],
  });
}

/** The agent breaks a rule and is not started: nothing was written. */
export function agentRejected(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: FAILURES.agentRejected, message: reason, nonRetryable: true });
}

/** Told to the sender of an update whose handler has a bug; the agent itself ends as failed. */
export function handlerBroken(bug: unknown): ApplicationFailure {
  const message = `a bug in errand: ${rootCauseOf(bug)}; the agent ends as failed`;
  return ApplicationFailure.create({ type: FAILURES.handlerBroken, message, nonRetryable: true });
}

/** How an agent ended, as its transcript has it. */
export interface AgentEnd {
  readonly status: AgentStatus;
  readonly error?: string;
}

/** For an agent whose history is behind its transcript, which says that it has ended: the workflow closes with that. */
export function agentEnded(end: AgentEnd): ApplicationFailure {
  return ApplicationFailure.create({
    type: FAILURES.agentEnded,
    message: `the agent has ended before: ${end.status}`,
    nonRetryable: true,
    details: [end],
  });
}

/** The recorded end that an activity's failure reports, if it does. */
export function endOfFailure(error: unknown): AgentEnd | undefined {
  const root = deepest(error);
  if (!(root instanceof ApplicationFailure) || root.type !== FAILURES.agentEnded) return undefined;
  return root.details?.[0] as AgentEnd | undefined;
}

/** For an attempt that is no longer the current one. */
export function attemptStale(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: FAILURES.attemptStale, message: reason, nonRetryable: true });
}

/** Disk full, store away: waited out by the retry policy. */
export function storeUnavailable(reason: string, nextRetryDelayMs?: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: FAILURES.storeUnavailable,
    message: reason,
    nextRetryDelay: nextRetryDelayMs,
  });
}

/** What is stored was written by a newer version, or is damaged; no retry helps, and nothing is overwritten. */
export function storeInvalid(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: FAILURES.storeInvalid, message: reason, nonRetryable: true });
}

/** What the run has stored is no longer there; no retry helps, and what is there instead was left alone. */
export function storeGone(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: FAILURES.storeGone, message: reason, nonRetryable: true });
}

export function isStoreGone(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure && error.type === FAILURES.storeGone;
}

/** Trouble that passes: it is waited out, up to the agent's `outageMs`. */
const OUTAGES: readonly string[] = [
  FAILURES.storeUnavailable,
  FAILURES.modelRateLimited,
  FAILURES.modelOverloaded,
  FAILURES.modelUnreachable,
  FAILURES.modelServer,
  FAILURES.modelCut,
  FAILURES.modelIdle,
  FAILURES.modelOtherServer,
];

export function isOutage(error: unknown): error is ApplicationFailure {
  return error instanceof ApplicationFailure && OUTAGES.includes(error.type ?? '') && error.nonRetryable !== true;
}

/** The same trouble, with when it began, for whoever looks at the pending activity. */
export function outageSince(failure: ApplicationFailure, sinceMs: number, retryDelayMs: number): ApplicationFailure {
  const [first] = failure.details ?? [];
  return ApplicationFailure.create({
    type: failure.type ?? undefined,
    message: failure.message,
    nextRetryDelay: retryDelayMs,
    details: [{ ...(first as object | undefined), since: new Date(sinceMs).toISOString() }],
  });
}

/** The trouble has lasted longer than the agent waits. */
export function outageTooLong(failure: ApplicationFailure, waitedMs: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: failure.type ?? undefined,
    message: `gave up after ${Math.round(waitedMs / 1000)} s of trouble (limits.outageMs): ${failure.message}`,
    nonRetryable: true,
    details: failure.details ?? [],
  });
}

/** Whether an activity ended because what is stored could not be read or written: the next one would fare no better. */
export function isStoreTrouble(error: unknown): boolean {
  const root = deepest(error);
  const types: readonly string[] = [FAILURES.storeUnavailable, FAILURES.storeInvalid, FAILURES.storeGone];
  return root instanceof ApplicationFailure && types.includes(root.type ?? '');
}

/**
 * Told to the server in the name of a worker that died. The pause is for the server to notice that the dead worker's
 * open poll is gone: a retry that is due at once is often handed to it.
 */
export function workerLost(identity: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: FAILURES.workerLost,
    message: `worker ${identity} died`,
    nextRetryDelay: HAND_OVER_DELAY_MS,
  });
}

/** For an attempt that goes on elsewhere because its worker was told to end; not a cancellation. */
export function workerShutdown(): ApplicationFailure {
  return ApplicationFailure.create({
    type: FAILURES.workerShutdown,
    message: 'the worker was told to end; another one goes on',
    nextRetryDelay: HAND_OVER_DELAY_MS,
  });
}

const HAND_OVER_DELAY_MS = 100;

/** The stored data do not fit the input; no retry helps. */
export function inputInvalid(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: FAILURES.inputInvalid, message: reason, nonRetryable: true });
}

/** What the model server answered, or that it did not; `src/model/failure.ts` decides the rest. */
export function modelFailure(facts: {
  readonly type: string;
  /** At most 300 bytes, nothing of the conversation in it. */
  readonly message: string;
  /** How long to wait before the next attempt; undefined: no attempt can help. */
  readonly retryDelayMs: number | undefined;
  readonly details: Readonly<Record<string, unknown>>;
}): ApplicationFailure {
  return ApplicationFailure.create({
    type: facts.type,
    message: facts.message,
    nonRetryable: facts.retryDelayMs === undefined,
    nextRetryDelay: facts.retryDelayMs,
    details: [facts.details],
  });
}

/** The run's conversation and the workers' key do not belong together: waited out until workers of its server are there. */
export function modelOtherServer(run: string, workers: string, nextRetryDelayMs: number): ApplicationFailure {
  const servers = `this run's model server is ${modelServerWords(run)}, the workers use ${modelServerWords(workers)}`;
  const next = run === DEMO_MODEL_SERVER ? 'run "errand demo"' : 'run "errand up" from a shell with its settings';
  return ApplicationFailure.create({
    type: FAILURES.modelOtherServer,
    message: `${servers}; ${next}`,
    nextRetryDelay: nextRetryDelayMs,
  });
}

export function isRejection(error: unknown): boolean {
  return (
    deepest(error) instanceof ApplicationFailure &&
    (deepest(error) as ApplicationFailure).type === FAILURES.agentRejected
  );
}

/** Message of the innermost cause: "Activity task failed" alone tells nobody anything. At most 300 characters. */
export function rootCauseOf(error: unknown): string {
  const root = deepest(error);
  const type = root instanceof ApplicationFailure && root.type ? `${root.type}: ` : '';
  const message = root instanceof TimeoutFailure ? `timed out (${root.timeoutType})` : messageOf(root);
  return `${type}${message}`.slice(0, 300);
}

/** How a child ended, read from the failure that its parent got. */
export function childEnding(error: unknown): { status: AgentStatus; error?: string } {
  if (!(error instanceof ChildWorkflowFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { status: 'cancelled' };
  if (cause instanceof TerminatedFailure) return { status: 'lost', error: 'terminated' };
  if (isRejection(error)) return { status: 'rejected', error: rootCauseOf(error) };
  return { status: 'failed', error: rootCauseOf(error) };
}

/** The result that a failed agent's failure carries, if it does. */
export function resultOfFailure(error: unknown): AgentResult | undefined {
  for (let current = error; current instanceof Error; current = current.cause) {
    if (current instanceof ApplicationFailure && current.type === FAILURES.agentFailed) {
      return current.details?.[0] as AgentResult | undefined;
    }
  }
  return undefined;
}

function deepest(error: unknown): unknown {
  let current = error;
  while (isWrapper(current) && current.cause) current = current.cause;
  return current;
}

function isWrapper(error: unknown): error is TemporalFailure {
  return error instanceof ActivityFailure || error instanceof ChildWorkflowFailure;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

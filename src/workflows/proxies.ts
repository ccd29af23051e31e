import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { ActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { ASLEEP_MS } from '../protocol.ts';
import type { AgentInput, Call } from '../protocol.ts';

/**
 * Every time limit and retry rule of an agent, side by side. All options are written out: the SDK's and the server's
 * defaults differ between versions, and a default that changes would change running agents.
 */

/** A worker that died is noticed after this; a cancellation is felt within the worker's throttle of 2 s. */
const HEARTBEAT_TIMEOUT_MS = 10_000;

/** One attempt at a model call; the activity has its own deadline below it. */
export const MODEL_ATTEMPT_TIMEOUT_MS = 30 * 60_000;

const TOOL_ATTEMPT_TIMEOUT_MS = 10 * 60_000;

const OPEN_ATTEMPT_TIMEOUT_MS = 60_000;

/** What a job gets above its own limit, to be ended and told. */
const JOB_GRACE_MS = 5 * 60_000;

/**
 * Infrastructure trouble has no attempt limit; the activities add jitter, honour `retry-after` and give up once it has
 * lasted for `limits.outageMs`, which schedule-to-close leaves beside one attempt and a long sleep. What no retry can
 * cure says so itself (`nonRetryable`): a list of types here would be in history twice a turn.
 */
const PATIENT: ActivityOptions['retry'] = {
  initialInterval: 1_000,
  backoffCoefficient: 2,
  maximumInterval: 60_000,
  maximumAttempts: Number.POSITIVE_INFINITY,
};

const COMMON = {
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  allowEagerDispatch: true,
  retry: PATIENT,
} satisfies ActivityOptions;

/** Only there to give the calls their types; every call passes its own options. */
export const activities = proxyActivities<Activities>({ ...COMMON, startToCloseTimeout: TOOL_ATTEMPT_TIMEOUT_MS });

export function openOptions(input: AgentInput): ActivityOptions {
  return {
    ...COMMON,
    startToCloseTimeout: OPEN_ATTEMPT_TIMEOUT_MS,
    scheduleToCloseTimeout: openFor(OPEN_ATTEMPT_TIMEOUT_MS, input),
    activityId: 'open',
    summary: 'open transcript',
  };
}

export function modelOptions(input: AgentInput, turn: number): ActivityOptions {
  return {
    ...COMMON,
    startToCloseTimeout: MODEL_ATTEMPT_TIMEOUT_MS,
    scheduleToCloseTimeout: openFor(MODEL_ATTEMPT_TIMEOUT_MS, input),
    activityId: `t${turn}`,
    summary: `turn ${turn} · ${input.model}`,
  };
}

/** After the time limit nobody waits out an outage for a few last words. */
export function lastWordsOptions(input: AgentInput, turn: number): ActivityOptions {
  return { ...modelOptions(input, turn), scheduleToCloseTimeout: 5 * 60_000, summary: `turn ${turn} · last words` };
}

export function readsOptions(input: AgentInput, calls: readonly Call[]): ActivityOptions {
  const [first, last] = [calls[0], calls.at(-1)];
  const isBatch = first !== undefined && last !== undefined && calls.length > 1;
  return {
    ...COMMON,
    startToCloseTimeout: TOOL_ATTEMPT_TIMEOUT_MS,
    scheduleToCloseTimeout: openFor(TOOL_ATTEMPT_TIMEOUT_MS, input),
    activityId: isBatch ? `${first.callId}-${last.callId.slice(last.callId.indexOf('.') + 1)}` : first?.callId,
    summary: cut(calls.map((call) => call.summary).join(' · ')),
  };
}

export function effectOptions(input: AgentInput, call: Call): ActivityOptions {
  const attemptMs = call.timeoutMs === undefined ? TOOL_ATTEMPT_TIMEOUT_MS : call.timeoutMs + JOB_GRACE_MS;
  return {
    ...COMMON,
    startToCloseTimeout: attemptMs,
    scheduleToCloseTimeout: openFor(attemptMs, input),
    activityId: call.callId,
    summary: cut(call.summary),
  };
}

/** Cancels and awaits a child of another history, which may take as long as its own ending does. */
export function settleOptions(input: AgentInput, call: Call): ActivityOptions {
  return {
    ...COMMON,
    startToCloseTimeout: TOOL_ATTEMPT_TIMEOUT_MS,
    scheduleToCloseTimeout: openFor(TOOL_ATTEMPT_TIMEOUT_MS, input),
    activityId: call.callId,
    summary: cut(`settle ${call.summary}`),
  };
}

/** Closing never gives up: a full disk or a missing store is waited for without end. */
export function closeOptions(): ActivityOptions {
  return { ...COMMON, startToCloseTimeout: 5 * 60_000, activityId: 'close', summary: 'close transcript' };
}

/** Found again by the next look when it gives up. */
export function reconcileOptions(): ActivityOptions {
  return {
    ...COMMON,
    startToCloseTimeout: 30 * 60_000,
    scheduleToCloseTimeout: 60 * 60_000,
    activityId: 'reconcile',
    summary: 'end lost agents',
  };
}

/** From here on the server gives up by itself. */
function openFor(attemptMs: number, { limits }: AgentInput): number {
  return attemptMs + limits.outageMs + ASLEEP_MS;
}

/** The UI shows about 120 characters of a summary. */
function cut(summary: string): string {
  return summary.length <= 120 ? summary : `${summary.slice(0, 119)}…`;
}

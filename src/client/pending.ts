import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { FAILURES } from '../failures.ts';

type Description = Awaited<ReturnType<ReturnType<Client['workflow']['getHandle']>['describe']>>;
type Pending = NonNullable<NonNullable<Description['raw']['pendingActivities']>[number]>;

const FAILURE_WORDS: Readonly<Record<string, string>> = {
  [FAILURES.modelRateLimited]: 'model rate limit',
  [FAILURES.modelOverloaded]: 'model overloaded',
  [FAILURES.modelUnreachable]: 'model not reachable',
  [FAILURES.modelServer]: 'model server error',
  [FAILURES.modelCut]: 'model stream cut',
  [FAILURES.modelIdle]: 'model silent',
  [FAILURES.workerLost]: 'a worker died; retrying',
  [FAILURES.workerShutdown]: 'handed over to another worker',
};

/** temporal.api.enums.v1.PendingActivityState */
const SCHEDULED = 1;
const STARTED = 2;

/** What the server says of an agent's open work. */
export interface OpenWork {
  /** Why it does not move, in a few words; missing while something is at work on it, or when it has ended. */
  readonly waitingFor?: string;
  /** Something of it has failed and is tried again: more telling than a step that nobody has taken. */
  readonly hasTrouble: boolean;
  /** Workflow ids of the sub-agents it waits for. */
  readonly children: readonly string[];
  /** The server knows no such agent. */
  readonly isUnknown: boolean;
}

/**
 * Asks the server about an agent: `model not reachable since 02:13 (attempt 7)`. `since` is when it last moved, for
 * trouble that does not say itself when it began.
 */
export async function askOpenWork(client: Client, workflowId: string, since: Date): Promise<OpenWork> {
  const description = await client.workflow
    .getHandle(workflowId)
    .describe()
    .catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    });
  if (description === undefined) return { hasTrouble: false, children: [], isUnknown: true };
  if (description.status.name !== 'RUNNING') return { hasTrouble: false, children: [], isUnknown: false };
  const { pendingChildren } = description.raw;
  const pending = description.raw.pendingActivities ?? [];
  const children = (pendingChildren ?? []).flatMap(({ workflowId: id }) => (id ? [id] : []));
  return {
    waitingFor: waitingWords(pending, waitingTask(description), since),
    hasTrouble: pending.some(isFailing),
    children,
    isUnknown: false,
  };
}

/** Only the words of `askOpenWork`. */
export async function describePending(client: Client, workflowId: string, since: Date): Promise<string | undefined> {
  return (await askOpenWork(client, workflowId, since)).waitingFor;
}

/** What nobody has taken yet, and since when it lies there, where the server says it. */
export interface WaitingTask {
  readonly since?: Date;
}

/** Work is handed out in milliseconds; only what lies longer waits for somebody. */
const UNCLAIMED_MS = 2000;

/** The words for what the server says of an agent's open work. */
export function waitingWords(
  pending: readonly Pending[],
  task: WaitingTask | undefined,
  since: Date,
  now = new Date(),
): string | undefined {
  const failing = pending.find(isFailing);
  if (failing) {
    return `${failingWords(failing, clock(sinceOf(failing) ?? since, now))} (attempt ${failing.attempt})`;
  }
  const isNew = ({ state, attempt }: Pending) => state === SCHEDULED && (attempt ?? 0) <= 1;
  const unclaimed = [
    ...pending.filter(isNew).map(({ scheduledTime }) => toDate(scheduledTime) ?? since),
    ...(task === undefined ? [] : [task.since ?? since]),
  ];
  const oldest = unclaimed.sort((a, b) => a.getTime() - b.getTime())[0];
  if (oldest === undefined || now.getTime() - oldest.getTime() < UNCLAIMED_MS) return undefined;
  return `no worker has taken the next step since ${clock(oldest, now)}`;
}

/** `02:13`, with the day when it is not today's: `27 Nov 02:13`. */
export function clock(time: Date, now = new Date()): string {
  const hours = time.toTimeString().slice(0, 5);
  if (time.toDateString() === now.toDateString()) return hours;
  const [, month = '', day = ''] = time.toDateString().split(' ');
  return `${Number(day)} ${month} ${hours}`;
}

function isFailing(activity: Pending): boolean {
  return (activity.attempt ?? 0) > 1 && Boolean(activity.lastFailure) && !isAtWork(activity);
}

/** An attempt that has lived long enough to beat: whatever ended the one before it, this one is under way. */
function isAtWork({ state, lastStartedTime, lastHeartbeatTime }: Pending): boolean {
  if (state !== STARTED || !lastStartedTime || !lastHeartbeatTime) return false;
  return toMs(lastHeartbeatTime) > toMs(lastStartedTime);
}

type Timestamp = NonNullable<Pending['lastStartedTime']>;

function toDate(time: Timestamp | null | undefined): Date | undefined {
  return time ? new Date(toMs(time)) : undefined;
}

function toMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds ?? 0) * 1000 + (nanos ?? 0) / 1e6;
}

/** When the trouble began, as the activity that met it says. */
function sinceOf({ lastFailure }: Pending): Date | undefined {
  const [payload] = lastFailure?.applicationFailureInfo?.details?.payloads ?? [];
  const details: unknown = payload && defaultPayloadConverter.fromPayload(payload);
  if (typeof details !== 'object' || details === null || !('since' in details)) return undefined;
  const since = new Date(String(details.since));
  return Number.isNaN(since.getTime()) ? undefined : since;
}

function waitingTask({ raw }: Description): WaitingTask | undefined {
  const task = raw.pendingWorkflowTask;
  if (!task || task.startedTime) return undefined;
  return { since: toDate(task.originalScheduledTime ?? task.scheduledTime) };
}

/** What is wrong, since when, and where a person has to do something about it, what. */
function failingWords(failing: Pending, since: string): string {
  const { lastFailure } = failing;
  if (lastFailure?.applicationFailureInfo?.type !== FAILURES.modelOtherServer)
    return `${failureWords(failing)} since ${since}`;
  const [trouble = '', next = ''] = (lastFailure.message ?? '').split('; ');
  return `${trouble} since ${since}; ${next}`;
}

function failureWords({ lastFailure, activityType }: Pending): string {
  const type = lastFailure?.applicationFailureInfo?.type ?? '';
  if (FAILURE_WORDS[type] !== undefined) return FAILURE_WORDS[type];
  if (type === FAILURES.storeUnavailable) return `store not available: ${firstWords(lastFailure?.message)}`;
  if (lastFailure?.timeoutFailureInfo)
    return `no word from the worker of ${activityType?.name ?? 'an activity'}; retrying`;
  return `${activityType?.name ?? 'an activity'} failed: ${(lastFailure?.message ?? '').slice(0, 200)}`;
}

/** `disk full (ENOSPC: …)` is `disk full`: the rest is for whoever looks into it. */
function firstWords(message: string | null | undefined): string {
  return (message ?? '').split(' (')[0] ?? '';
}

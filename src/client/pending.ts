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

/**
 * Why an agent does not move, in a few words; undefined while something is at work on it. `model not reachable since
 * 02:13 (attempt 7)`. `since` is when it last moved, for trouble that does not say itself when it began.
 */
export async function describePending(client: Client, workflowId: string, since: Date): Promise<string | undefined> {
  const description = await client.workflow
    .getHandle(workflowId)
    .describe()
    .catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    });
  if (description?.status.name !== 'RUNNING') return undefined;
  return waitingWords(description.raw.pendingActivities ?? [], hasWaitingTask(description), since);
}

/** The words for what the server says of an agent's open work. */
export function waitingWords(pending: readonly Pending[], hasWaitingTask: boolean, since: Date): string | undefined {
  const failing = pending.find(
    (activity) => (activity.attempt ?? 0) > 1 && activity.lastFailure && !isAtWork(activity),
  );
  if (failing) return `${failingWords(failing, clock(sinceOf(failing) ?? since))} (attempt ${failing.attempt})`;
  const isUnclaimed = pending.some(({ state, attempt }) => state === SCHEDULED && (attempt ?? 0) <= 1);
  return isUnclaimed || hasWaitingTask ? `no worker has taken the next step since ${clock(since)}` : undefined;
}

/** An attempt that has lived long enough to beat: whatever ended the one before it, this one is under way. */
function isAtWork({ state, lastStartedTime, lastHeartbeatTime }: Pending): boolean {
  if (state !== STARTED || !lastStartedTime || !lastHeartbeatTime) return false;
  return toMs(lastHeartbeatTime) > toMs(lastStartedTime);
}

type Timestamp = NonNullable<Pending['lastStartedTime']>;

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

function hasWaitingTask({ raw }: Description): boolean {
  return (
    raw.pendingWorkflowTask !== null && raw.pendingWorkflowTask !== undefined && !raw.pendingWorkflowTask.startedTime
  );
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
  if (lastFailure?.timeoutFailureInfo) return `worker of ${activityType?.name ?? 'an activity'} was lost; retrying`;
  return `${activityType?.name ?? 'an activity'} failed: ${(lastFailure?.message ?? '').slice(0, 200)}`;
}

/** `disk full (ENOSPC: …)` is `disk full`: the rest is for whoever looks into it. */
function firstWords(message: string | null | undefined): string {
  return (message ?? '').split(' (')[0] ?? '';
}

function clock(time: Date): string {
  return time.toTimeString().slice(0, 5);
}

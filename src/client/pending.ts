import { WorkflowNotFoundError, type Client } from '@temporalio/client';
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
  [FAILURES.storeUnavailable]: 'disk or store not available',
};

/** temporal.api.enums.v1.PendingActivityState.SCHEDULED */
const SCHEDULED = 1;

/**
 * Why an agent does not move, in a few words; undefined while something is at work on it. `model not reachable since
 * 02:13 (attempt 7)`.
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
  const failing = pending.find(({ attempt, lastFailure }) => (attempt ?? 0) > 1 && lastFailure);
  if (failing) return `${failureWords(failing)} since ${clock(since)} (attempt ${failing.attempt})`;
  const isUnclaimed = pending.some(({ state, attempt }) => state === SCHEDULED && (attempt ?? 0) <= 1);
  return isUnclaimed || hasWaitingTask ? `no worker has taken the next step since ${clock(since)}` : undefined;
}

function hasWaitingTask({ raw }: Description): boolean {
  return (
    raw.pendingWorkflowTask !== null && raw.pendingWorkflowTask !== undefined && !raw.pendingWorkflowTask.startedTime
  );
}

function failureWords({ lastFailure, activityType }: Pending): string {
  const type = lastFailure?.applicationFailureInfo?.type ?? '';
  if (FAILURE_WORDS[type] !== undefined) return FAILURE_WORDS[type];
  if (lastFailure?.timeoutFailureInfo) return `worker of ${activityType?.name ?? 'an activity'} was lost; retrying`;
  return `${activityType?.name ?? 'an activity'} failed: ${(lastFailure?.message ?? '').slice(0, 200)}`;
}

function clock(time: Date): string {
  return time.toTimeString().slice(0, 5);
}

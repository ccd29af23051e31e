import type { WorkflowHandle } from '@temporalio/client';

/** One activity of a closed or running workflow, by the attempt that counted, or that is under way. */
export interface ActivityAttempt {
  readonly activityId: string;
  readonly attempt: number;
  readonly identity: string;
  /** What the attempt before it ended with: a failure's type, or `timeout`. */
  readonly lastFailure: string | undefined;
}

type Failure = { applicationFailureInfo?: { type?: string | null } | null; timeoutFailureInfo?: object | null };

/** Activities that have ended, from the history. */
export async function endedAttempts(handle: WorkflowHandle): Promise<readonly ActivityAttempt[]> {
  const { events } = await handle.fetchHistory();
  const scheduled = new Map(
    events?.map((event) => [String(event.eventId), event.activityTaskScheduledEventAttributes?.activityId]),
  );
  return (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) =>
    started
      ? [
          {
            activityId: scheduled.get(String(started.scheduledEventId)) ?? '',
            attempt: started.attempt ?? 0,
            identity: started.identity ?? '',
            lastFailure: failureType(started.lastFailure),
          },
        ]
      : [],
  );
}

/** The activity attempts that a worker has now. */
export async function runningAttempts(handle: WorkflowHandle): Promise<readonly ActivityAttempt[]> {
  const { raw } = await handle.describe();
  const started = raw.pendingActivities?.filter(({ state }) => state === 2);
  return (started ?? []).map(({ activityId, attempt, lastWorkerIdentity, lastFailure }) => ({
    activityId: activityId ?? '',
    attempt: attempt ?? 0,
    identity: lastWorkerIdentity ?? '',
    lastFailure: failureType(lastFailure),
  }));
}

/** Names of the events of a history in which the server waited in vain for somebody. */
export async function timeOuts(handle: WorkflowHandle): Promise<readonly string[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(
    ({ workflowTaskTimedOutEventAttributes: task, activityTaskTimedOutEventAttributes: activity }) => [
      ...(task ? ['workflow task timed out'] : []),
      ...(activity ? ['activity timed out'] : []),
    ],
  );
}

function failureType(failure: Failure | null | undefined): string | undefined {
  if (!failure) return undefined;
  return failure.timeoutFailureInfo ? 'timeout' : (failure.applicationFailureInfo?.type ?? 'other');
}

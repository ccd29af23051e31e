import { conversation } from './chain.ts';
import { OWNER_EVENT } from './records.ts';
import type { TranscriptRecord } from './records.ts';

export { OWNER_EVENT } from './records.ts';

/** Who wants to write, and where in the conversation it believes to be. */
export interface WriteClaim {
  readonly records: readonly TranscriptRecord[];
  readonly workflowRunId: string;
  readonly activityAttempt: number;
  /** Turn that the activity is about. */
  readonly expectedTurn: number;
  /** The process may have slept, so that another attempt may have taken over unseen. */
  readonly hasSlept?: boolean;
}

/** A newer attempt or run has taken over: this one writes nothing and does nothing more. */
export class StaleAttemptError extends Error {
  override readonly name = 'StaleAttemptError';
}

/**
 * Decides whether this attempt may write. Only asks the server when the transcript gives a reason to doubt it, and only
 * a no is stale. `newOwner`: the caller appends an owner event before anything else. A record that is already there
 * answers the attempt without this question, and usage records need no permission.
 */
export async function mayWrite(
  claim: WriteClaim,
  askServer: () => Promise<boolean>,
): Promise<{ readonly newOwner: boolean }> {
  const owner = ownerOf(claim.records);
  const newOwner = owner !== undefined && owner !== claim.workflowRunId;
  const doubt = runDoubt(claim, owner) ?? attemptDoubt(claim) ?? turnDoubt(claim) ?? sleepDoubt(claim);
  if (doubt !== undefined && !(await askServer())) throw new StaleAttemptError(doubt);
  return { newOwner };
}

/** Workflow run that owns the transcript: the last one named, at first by `session_meta`. */
export function ownerOf(records: readonly TranscriptRecord[]): string | undefined {
  return records.reduce<string | undefined>((owner, record) => ownerIn(record) ?? owner, undefined);
}

function ownerIn(record: TranscriptRecord): string | undefined {
  if (record.type === 'session_meta') return record.workflowRunId;
  if (record.type !== 'event' || record.name !== OWNER_EVENT) return undefined;
  const { workflowRunId } = record.data;
  return typeof workflowRunId === 'string' ? workflowRunId : undefined;
}

function runDoubt({ workflowRunId }: WriteClaim, owner: string | undefined): string | undefined {
  if (owner === undefined || owner === workflowRunId) return undefined;
  return `Workflow run ${workflowRunId} may not write: the transcript belongs to workflow run ${owner}`;
}

function attemptDoubt({ records, workflowRunId, activityAttempt, expectedTurn }: WriteClaim): string | undefined {
  const highest = records.reduce((high, record) => {
    const isOurs = record.type === 'attempt' && record.turn === expectedTurn && record.workflowRunId === workflowRunId;
    return isOurs ? Math.max(high, record.activityAttempt) : high;
  }, 0);
  if (highest <= activityAttempt) return undefined;
  return `Activity attempt ${activityAttempt} of turn ${expectedTurn} may not write: attempt ${highest} has taken over`;
}

function sleepDoubt({ hasSlept, activityAttempt, expectedTurn }: WriteClaim): string | undefined {
  if (!hasSlept) return undefined;
  return `Activity attempt ${activityAttempt} of turn ${expectedTurn} may not write: it slept, and another has taken over`;
}

function turnDoubt({ records, workflowRunId, activityAttempt, expectedTurn }: WriteClaim): string | undefined {
  const last = conversation(records).findLast((record) => record.type === 'message');
  if (last === undefined || last.type !== 'message' || last.turn <= expectedTurn) return undefined;
  return (
    `Activity attempt ${activityAttempt} of workflow run ${workflowRunId} may not write turn ${expectedTurn}: ` +
    `the conversation has reached turn ${last.turn}`
  );
}

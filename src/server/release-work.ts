import { setTimeout as sleep } from 'node:timers/promises';
import { defaultFailureConverter, defaultPayloadConverter } from '@temporalio/common';
import { isGrpcServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { workerLost } from '../failures.ts';

/** Whose work is given back, and where it may be. */
export interface ReleaseOptions {
  readonly client: Client;
  readonly namespace: string;
  /** The worker's name at the server. It must be dead: a living one would lose what it is doing. */
  readonly identity: string;
  readonly queue: string;
  readonly giveUpAfterMs: number;
}

/**
 * Gives everything that a dead worker held to the others, instead of waiting for its time-outs: workflows forget its
 * cache, its activities are tried again elsewhere. Looks again until nothing has carried the dead name for a while,
 * since the list of open workflows lags and a task may still have been handed to the dead worker's open poll. Resolves
 * with the number of activities that were given back.
 */
export async function releaseWork(options: ReleaseOptions): Promise<number> {
  const deadline = Date.now() + options.giveUpAfterMs;
  const unstuck = new Set<string>();
  let released = 0;
  for (let quietRounds = 0; quietRounds < QUIET_ROUNDS && Date.now() < deadline; quietRounds++) {
    const inRound = await releaseOnce(options, unstuck);
    if (inRound > 0) quietRounds = 0;
    released += inRound;
    await sleep(ROUND_PAUSE_MS);
  }
  return released;
}

const QUIET_ROUNDS = 5;
const ROUND_PAUSE_MS = 250;
const AT_A_TIME = 16;

/** temporal.api.enums.v1.PendingActivityState: a worker has it. One that waits for its next attempt is left alone. */
const HELD_STATES: ReadonlySet<unknown> = new Set([2 /* STARTED */, 3 /* CANCEL_REQUESTED */]);

// NOT_FOUND: the workflow closed, or the activity ended, since it was looked at. FAILED_PRECONDITION: likewise.
const SETTLED_CODES: ReadonlySet<number> = new Set([5, 9]);

async function releaseOnce(options: ReleaseOptions, unstuck: Set<string>): Promise<number> {
  const waiting = await openWorkflows(options);
  let released = 0;
  const workOff = async () => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (!unstuck.has(id)) await forgetCache(options, id);
      unstuck.add(id);
      released += await releaseActivities(options, id);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, workOff));
  return released;
}

async function openWorkflows({ client, queue }: ReleaseOptions): Promise<string[]> {
  const ids: string[] = [];
  const query = `TaskQueue = '${queue}' AND ExecutionStatus = 'Running'`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

// Which worker caches a workflow is not told, so all forget theirs: the price is one replay each.
async function forgetCache({ client, namespace }: ReleaseOptions, workflowId: string): Promise<void> {
  await unlessSettled(client.workflowService.resetStickyTaskQueue({ namespace, execution: { workflowId } }));
}

// Looked at and told right after each other: an attempt that a living worker has taken over must not be failed.
async function releaseActivities(options: ReleaseOptions, workflowId: string): Promise<number> {
  const { client, namespace, identity } = options;
  const description = await unlessSettled(client.workflow.getHandle(workflowId).describe());
  const held = description?.raw.pendingActivities?.filter(
    ({ state, lastWorkerIdentity }) => lastWorkerIdentity === identity && HELD_STATES.has(state),
  );
  for (const { activityId } of held ?? []) {
    const execution = { namespace, workflowId, runId: description?.runId ?? '', activityId: activityId ?? '' };
    await unlessSettled(
      client.workflowService.respondActivityTaskFailedById({ ...execution, identity, failure: toFailure(identity) }),
    );
  }
  return held?.length ?? 0;
}

function toFailure(identity: string) {
  return defaultFailureConverter.errorToFailure(workerLost(identity), defaultPayloadConverter);
}

async function unlessSettled<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    const isSettled = isGrpcServiceError(error) && SETTLED_CODES.has(error.code);
    if (isSettled || error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

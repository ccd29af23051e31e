import { Context } from '@temporalio/activity';
import { callFolder } from '../effects/journal.ts';
import { cancelJob } from '../jobs/cancel-job.ts';
import type { BranchPosition } from '../store/chain.ts';
import { FORK_EVENT, branchOfRun, forkId, forkOf, splitAt } from '../store/fork.ts';
import { metaFromRecords, writeMeta } from '../store/meta.ts';
import { positionOf } from '../store/records.ts';
import type { AssistantMessageRecord, TranscriptRecord } from '../store/records.ts';
import type { AgentRef } from '../protocol.ts';
import { refOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { lostEffectsNote } from './lost-effects.ts';
import { endChild } from './lost-children.ts';
import { unreadableOutcome } from './unreadable.ts';

/** Whether this is the first activity of a reset run that has anything to write. */
export function isUnforked({ ref, transcript }: AgentFiles): boolean {
  return ref.branch !== '' && forkOf(transcript, ref) === undefined;
}

export interface ForkPoint {
  /** Last turn that stays. */
  readonly keptTurn: number;
  /**
   * Children of that very turn stay: the reset run has started some of them itself. Otherwise it has none open, since it
   * only comes to an activity when all have settled.
   */
  readonly keepsChildren?: boolean;
}

/**
 * Begins the branch of a deliberate reset. What still runs of the part that was left behind is ended first, jobs and
 * children; then one record says where the branch starts and what had already taken effect. Runs again without harm.
 * `awake` throws for an attempt that slept while it waited and is no longer the current one.
 */
export async function fork(
  deps: ActivityDeps,
  files: AgentFiles,
  point: ForkPoint,
  awake: () => Promise<void>,
): Promise<void> {
  const { ref, transcript } = files;
  const { keptTurn } = point;
  const { kept, lostReplies } = splitAt(transcript.records, await baseBranch(deps, files), keptTurn);
  const lastKept = point.keepsChildren ? [] : kept.filter(isReply).slice(-1);
  await endJobs(deps, ref, lostReplies);
  await endChildren(deps, ref, [...lastKept, ...lostReplies]);
  const note = await lostEffectsNote(deps, ref, transcript, lostReplies);
  await awake();
  await transcript.append({
    id: forkId(ref),
    type: 'event',
    turn: keptTurn,
    name: FORK_EVENT,
    parent: kept.at(-1)?.id ?? null,
    data: { keptTurn, ...(note !== undefined && { note }) },
  });
  await transcript.sync();
  await awake();
  await writeMeta(deps.home, ref, metaFromRecords(transcript.records));
}

async function endJobs(deps: ActivityDeps, ref: AgentRef, replies: readonly AssistantMessageRecord[]): Promise<void> {
  const folders = replies.flatMap((reply) =>
    reply.calls.map(({ callId }) => callFolder(deps.home, refOf(ref, reply), callId)),
  );
  await Promise.all(folders.map((folder) => endJob(deps, folder)));
}

/** A job whose files cannot be read ends by its own deadline; the model is told that its outcome is unknown. */
async function endJob(deps: ActivityDeps, folder: string): Promise<void> {
  try {
    await cancelJob(folder);
  } catch (error) {
    deps.log.error({ folder, outcome: unreadableOutcome(error) }, 'a job of the part that was left could not be ended');
  }
}

async function endChildren(
  deps: ActivityDeps,
  ref: AgentRef,
  replies: readonly AssistantMessageRecord[],
): Promise<void> {
  const children = replies.flatMap((reply) => reply.calls.flatMap(({ task }) => (task ? [task.agentId] : [])));
  await Promise.all(children.map((agentId) => endChild(deps, ref, agentId)));
}

/** Branch of the run that was reset. It need not be the newest: an older run can be reset once more. */
async function baseBranch(deps: ActivityDeps, { transcript }: AgentFiles): Promise<BranchPosition> {
  const runId = await resetRunId(deps);
  const known = runId === undefined ? undefined : branchOfRun(transcript.records, runId);
  return known ?? positionOf(transcript.tip ?? '');
}

/** Run that this one was reset from, as the server noted it right behind what it kept; read backwards from the end. */
async function resetRunId({ client, namespace }: ActivityDeps): Promise<string | undefined> {
  const { workflowExecution: execution } = Context.current().info;
  let nextPageToken: Uint8Array | undefined;
  do {
    const page = await client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace,
      execution,
      maximumPageSize: 100,
      ...(nextPageToken && { nextPageToken }),
    });
    for (const event of page.history?.events ?? []) {
      const failed = event.workflowTaskFailedEventAttributes;
      if (failed?.newRunId === execution?.runId && failed?.baseRunId) return failed.baseRunId;
    }
    nextPageToken = page.nextPageToken;
  } while (nextPageToken && nextPageToken.length > 0);
  return undefined;
}

function isReply(record: TranscriptRecord): record is AssistantMessageRecord {
  return record.type === 'message' && record.role === 'assistant';
}

import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { attemptStale } from '../failures.ts';
import { OWNER_EVENT, StaleAttemptError, mayWrite } from '../store/owner.ts';
import { recordId } from '../store/records.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { fork, isUnforked } from './fork.ts';
import type { ForkPoint } from './fork.ts';
import type { Pulse } from './heartbeat.ts';

/**
 * Asks the server whether this very attempt is the one it waits for. Throws when the server cannot be reached: then the
 * attempt is retried rather than guessed about.
 */
export async function isCurrentAttempt(client: Client): Promise<boolean> {
  const { workflowExecution, activityId, attempt } = Context.current().info;
  if (!workflowExecution) return false;
  const { raw } = await client.workflow.getHandle(workflowExecution.workflowId).describe();
  const isCurrentRun = raw.workflowExecutionInfo?.execution?.runId === workflowExecution.runId;
  const pending = raw.pendingActivities?.find((activity) => activity.activityId === activityId);
  return isCurrentRun && pending?.attempt === attempt;
}

/** What an attempt asks before it writes or acts. One for each attempt. */
export interface Fence {
  /**
   * Lets only the attempt pass that the server waits for: one of a worker that slept or of a run that was reset writes
   * nothing and does nothing. Looks at what others have written meanwhile. A new workflow run (continued as new, reset)
   * notes itself as the owner; a reset one begins its branch first, which keeps the turns before this one.
   */
  pass(files: AgentFiles, turn: number, more?: Pick<ForkPoint, 'keepsChildren'>): Promise<void>;
  /** The same right after the transcript was read or appended to, which has shown what others have written. */
  passAgain(files: AgentFiles, turn: number): Promise<void>;
  /** The same where nothing in the transcript can tell: only a process that may have slept asks the server. */
  awake(): Promise<void>;
}

/** A task that waited this long for its worker may have been given to another one before the worker woke up. */
const LATE_START_MS = 5_000;

export function createFence(deps: ActivityDeps, pulse: Pulse): Fence {
  // Sleeps up to this one are answered for: the server said afterwards that it still waits for this attempt.
  let answeredFor = isLateStart() ? -1 : 0;
  const askServer = async () => {
    const sleeps = pulse.sleeps();
    const isCurrent = await isCurrentAttempt(deps.client);
    if (isCurrent) answeredFor = sleeps;
    return isCurrent;
  };
  const hasSlept = () => pulse.sleeps() > answeredFor;
  const awake = async () => {
    if (hasSlept() && !(await askServer())) throw attemptStale('this attempt slept, and another one has taken over');
  };
  const mayPass = (files: AgentFiles, turn: number) => assertMayWrite(files, { turn, hasSlept: hasSlept() }, askServer);
  return {
    pass: async (files, turn, more) => {
      await files.transcript.refresh();
      const { newOwner } = await mayPass(files, turn);
      if (isUnforked(files)) await fork(deps, files, { keptTurn: turn - 1, ...more }, awake);
      if (newOwner) await noteOwner(files, turn);
    },
    passAgain: async (files, turn) => void (await mayPass(files, turn)),
    awake,
  };
}

function isLateStart(): boolean {
  return Math.abs(Date.now() - Context.current().info.currentAttemptScheduledTimestampMs) > LATE_START_MS;
}

async function assertMayWrite(
  files: AgentFiles,
  { turn, hasSlept }: { turn: number; hasSlept: boolean },
  askServer: () => Promise<boolean>,
): Promise<{ readonly newOwner: boolean }> {
  const { workflowExecution, attempt } = Context.current().info;
  const workflowRunId = workflowExecution?.runId ?? '';
  const { records } = files.transcript;
  try {
    const claim = { records, workflowRunId, activityAttempt: attempt, expectedTurn: turn, hasSlept };
    return await mayWrite(claim, askServer);
  } catch (error) {
    if (error instanceof StaleAttemptError) throw attemptStale(error.message);
    throw error;
  }
}

async function noteOwner(files: AgentFiles, turn: number): Promise<void> {
  const workflowRunId = Context.current().info.workflowExecution?.runId ?? '';
  await files.transcript.append({
    id: recordId({ ...files.ref, turn }, `owner.${workflowRunId}`),
    type: 'event',
    turn,
    name: OWNER_EVENT,
    data: { workflowRunId },
  });
}

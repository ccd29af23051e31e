import { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { attemptStale } from '../failures.ts';
import { OWNER_EVENT, StaleAttemptError, mayWrite } from '../store/owner.ts';
import { recordId } from '../store/records.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';

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

/**
 * Lets only the attempt pass that the server waits for: one of a worker that slept or of a run that was reset writes
 * nothing and does nothing. A new workflow run (continued as new, reset) notes itself as the owner.
 */
export async function assertMayWrite(deps: ActivityDeps, files: AgentFiles, turn: number): Promise<void> {
  const { workflowExecution, attempt } = Context.current().info;
  const workflowRunId = workflowExecution?.runId ?? '';
  const claim = { records: files.transcript.records, workflowRunId, activityAttempt: attempt, expectedTurn: turn };
  try {
    const { newOwner } = await mayWrite(claim, () => isCurrentAttempt(deps.client));
    if (newOwner) await noteOwner(files, workflowRunId, turn);
  } catch (error) {
    if (error instanceof StaleAttemptError) throw attemptStale(error.message);
    throw error;
  }
}

async function noteOwner(files: AgentFiles, workflowRunId: string, turn: number): Promise<void> {
  await files.transcript.append({
    id: recordId({ ...files.ref, turn }, `owner.${workflowRunId}`),
    type: 'event',
    turn,
    name: OWNER_EVENT,
    data: { workflowRunId },
  });
}

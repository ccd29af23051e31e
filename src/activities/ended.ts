import { Context } from '@temporalio/activity';
import { WorkflowNotFoundError } from '@temporalio/client';
import { agentEnded } from '../failures.ts';
import type { EndRecord } from '../store/records.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { endOf } from './terminal-record.ts';

/**
 * An agent that has its terminal record does nothing more, whatever a history that lost its last events asks for. The
 * workflow closes with what is recorded.
 */
export async function assertNotEnded(deps: ActivityDeps, { transcript, ref }: AgentFiles): Promise<void> {
  const end = endOf(transcript, ref);
  if (!end) return;
  await sendLostCancel(deps, end);
  throw agentEnded({ status: end.status, ...(end.error !== undefined && { error: end.error }) });
}

/** The server no longer knows that this run was cancelled: it is told again, so that both say the same. */
export async function sendLostCancel({ client }: ActivityDeps, end: EndRecord): Promise<void> {
  const { workflowExecution } = Context.current().info;
  if (end.status !== 'cancelled' || !workflowExecution) return;
  const { workflowId, runId } = workflowExecution;
  try {
    await client.workflow.getHandle(workflowId, runId).cancel();
  } catch (error) {
    // Closed already: then this attempt is a late one and there is nobody to tell.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

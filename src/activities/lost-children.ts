import { existsSync } from 'node:fs';
import { Context } from '@temporalio/activity';
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { workflowId } from '../protocol.ts';
import type { AgentRef } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { endOf } from '../store/meta.ts';
import type { EndRecord } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { ActivityDeps } from './deps.ts';
import { markLost } from './mark-lost.ts';

/**
 * Ends a child that this agent's history does not have: cancels it, waits until it has closed, and answers its terminal
 * record. Undefined: it never opened. One that the server closed without its last words gets its record here.
 */
export async function endChild(deps: ActivityDeps, parent: AgentRef, agentId: string): Promise<EndRecord | undefined> {
  await closeWorkflow(deps, workflowId(parent.runId, agentId));
  const ref = { ...parent, agentId };
  const file = transcriptFile(deps.home, ref);
  if (!existsSync(file)) return undefined;
  const { records } = await openCached(file);
  if (records.length === 0) return undefined;
  if (!endOf(records)) await markLost(deps, ref, 'it was closed without its last words');
  return endOf((await openCached(file)).records);
}

/** Waits for whichever run is current; a run that is gone already needs nothing. */
async function closeWorkflow({ client }: ActivityDeps, id: string): Promise<void> {
  const handle = client.workflow.getHandle(id);
  try {
    await client.withAbortSignal(Context.current().cancellationSignal, async () => {
      await handle.cancel();
      await handle.result();
    });
  } catch (error) {
    if (!(error instanceof WorkflowFailedError) && !(error instanceof WorkflowNotFoundError)) throw error;
  }
}

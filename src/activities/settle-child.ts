import type { Answer, SettleChildInput } from '../protocol.ts';
import { openAgent } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { assertNotEnded } from './ended.ts';
import { createFence } from './fence.ts';
import { isUnforked } from './fork.ts';
import { withHeartbeat } from './heartbeat.ts';
import { endChild } from './lost-children.ts';

/**
 * Answers for a child that could not be started because it is there already, from a history that a reset has left: it is
 * ended if it still runs, and its transcript says how it ended.
 */
export async function settleChild(deps: ActivityDeps, input: SettleChildInput): Promise<Answer> {
  const { ref, turn, callId, agentId } = input;
  return withHeartbeat(deps, async (pulse) => {
    const files = await openAgent(deps, ref);
    await assertNotEnded(deps, files);
    if (isUnforked(files)) await createFence(deps, pulse).pass(files, turn + 1, { keepsChildren: true });
    const end = await endChild(deps, ref, agentId);
    if (!end)
      return { callId, child: { agentId, status: 'rejected', error: `a workflow of its id was there already` } };
    const { status, error } = end;
    return { callId, child: { agentId, status, ...(error !== undefined && { error: error.slice(0, 300) }) } };
  });
}

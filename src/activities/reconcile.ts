import { setTimeout as sleep } from 'node:timers/promises';
import { fateOf } from '../reconcile/fate.ts';
import { RECENT_RUNS } from '../reconcile/open-agents.ts';
import { findLostAgents } from '../reconcile/lost-agents.ts';
import type { LostAgent } from '../reconcile/lost-agents.ts';
import { transcriptFile } from '../store/layout.ts';
import { listAgents } from '../store/listing.ts';
import { metaFromRecords, writeMeta } from '../store/meta.ts';
import { openCached } from '../store/transcript.ts';
import { subtreeOf } from '../store/usage.ts';
import type { ActivityDeps } from './deps.ts';
import { createFence } from './fence.ts';
import { withHeartbeat } from './heartbeat.ts';
import { markLost } from './mark-lost.ts';

/**
 * Gives every agent an ending that the server closed without one: terminated, or gone with its server's data. Two of
 * these at once do no harm, since the first terminal record stands. Answers their workflow ids.
 */
export async function reconcile(deps: ActivityDeps): Promise<readonly string[]> {
  return withHeartbeat(deps, async (pulse) => {
    const { signal, progress } = pulse;
    const { awake } = createFence(deps, pulse);
    const lost = await findLostAgents(deps.home, deps, RECENT_RUNS);
    for (const agent of lost) {
      signal.throwIfAborted();
      progress(agent.workflowId);
      await endLost(deps, agent, awake);
    }
    return lost.map(({ workflowId }) => workflowId);
  });
}

async function endLost(deps: ActivityDeps, agent: LostAgent, awake: () => Promise<void>): Promise<void> {
  await awaitDescendants(deps.home, agent);
  const transcript = await openCached(transcriptFile(deps.home, agent.place));
  try {
    await markLost(deps, agent.place, agent.reason, () => assertStillLost(deps, agent, awake));
  } catch (error) {
    if (!(error instanceof GoesOnError)) throw error;
    deps.log.info({ agentId: agent.place.agentId }, 'a lost agent was reset meanwhile and goes on');
    return;
  }
  // Its terminal record may have been there, and only the listing's file not.
  await writeMeta(deps.home, agent.place, metaFromRecords(transcript.records));
}

/** Its workflow runs again: a person has reset it. */
class GoesOnError extends Error {
  override readonly name = 'GoesOnError';
}

async function assertStillLost(deps: ActivityDeps, agent: LostAgent, awake: () => Promise<void>): Promise<void> {
  await awake();
  if ((await fateOf(deps, agent)).kind === 'open') throw new GoesOnError(`${agent.workflowId} runs again`);
}

/** The server has asked them to stop; what they cost until then belongs to the bill of the one above. */
const DESCENDANTS_END_WITHIN_MS = 30_000;

async function awaitDescendants(home: string, { place }: LostAgent): Promise<void> {
  const deadline = Date.now() + DESCENDANTS_END_WITHIN_MS;
  while (Date.now() < deadline && (await hasRunningDescendant(home, place))) await sleep(500);
}

async function hasRunningDescendant(home: string, { agentId, transcript }: LostAgent['place']): Promise<boolean> {
  const { agents } = await listAgents(home, transcript);
  if (!agents.some((agent) => agent.agentId === agentId)) return false;
  return subtreeOf(agents, agentId).some((agent) => agent.agentId !== agentId && agent.status === 'running');
}

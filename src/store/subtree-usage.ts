import type { Usage } from '../protocol.ts';
import { transcriptFile } from './layout.ts';
import type { AgentPlace } from './layout.ts';
import { listAgents } from './listing.ts';
import { readTranscript } from './read.ts';
import type { AgentMeta } from './records.ts';
import { subtreeOf, subtreeUsage, usageOf } from './usage.ts';

/**
 * What an agent and everything below it have used, from the files. Meta files are only trusted of agents that have
 * ended; the others may have died since theirs was written, so their transcripts are read, one at a time. An agent
 * without a readable first record counts as nothing: it is written before the first request is sent.
 */
export async function loadSubtreeUsage(home: string, place: AgentPlace): Promise<Usage> {
  const { agents } = await listAgents(home, place.transcript);
  const current: AgentMeta[] = [];
  for (const agent of subtreeOf(agents, place.agentId)) {
    current.push(await withCurrentUsage(home, place.transcript, agent));
  }
  return subtreeUsage(current, place.agentId);
}

async function withCurrentUsage(home: string, transcript: string, agent: AgentMeta): Promise<AgentMeta> {
  if (agent.endedAt !== null) return agent;
  const { records } = await readTranscript(transcriptFile(home, { ...agent, transcript }));
  return { ...agent, usage: { ...agent.usage, own: usageOf(records).own } };
}

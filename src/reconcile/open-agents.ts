import { stat } from 'node:fs/promises';
import type { AgentRef } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { listAgents, listRuns } from '../store/listing.ts';
import { readFirstRecord } from '../store/read.ts';
import type { AgentMeta } from '../store/records.ts';
import type { AgentWorkflow } from './fate.ts';

/** An agent without a terminal record, as its files have it. */
export interface OpenAgent extends AgentWorkflow {
  readonly place: Pick<AgentRef, 'runId' | 'agentId' | 'transcript'>;
  readonly meta: AgentMeta;
}

export interface ScanOptions {
  /** Newest runs that are looked at. */
  readonly maxRuns: number;
  /** A run that ended longer ago is not looked into: its agents have ended with it. Default: all are. */
  readonly endedWithinMs?: number;
}

/** What a worker looks at every minute: cheap, and nothing older can have been lost since the last look. */
export const RECENT_RUNS: ScanOptions = { maxRuns: 1000, endedWithinMs: 24 * 3600_000 };

/** Agents whose files say that they run, by run, root first. A file that cannot be read is left to `errand doctor`. */
export async function openAgents(
  home: string,
  { maxRuns, endedWithinMs = Infinity }: ScanOptions,
): Promise<OpenAgent[]> {
  const { runs } = await listRuns(home, { limit: maxRuns });
  const found: OpenAgent[] = [];
  for (const { transcript, meta } of runs) {
    if (meta.endedAt !== null && Date.now() - Date.parse(meta.endedAt) > endedWithinMs) continue;
    const { agents } = await listAgents(home, transcript);
    for (const agent of agents)
      if (agent.status === 'running') found.push(...(await toOpenAgent(home, transcript, agent)));
  }
  return found;
}

/** What the server is to be asked; nothing for a transcript that is another's or has no first record: the doctor names it. */
export async function toOpenAgent(home: string, transcript: string, meta: AgentMeta): Promise<OpenAgent[]> {
  const place = { runId: meta.runId, agentId: meta.agentId, transcript };
  const file = transcriptFile(home, place);
  try {
    const [first, { mtimeMs }] = await Promise.all([readFirstRecord(file), stat(file)]);
    if (first.agentId !== meta.agentId || first.runId !== meta.runId) return [];
    const { clusterId, namespace } = first;
    return [{ place, meta, workflowId: meta.workflowId, clusterId, namespace, lastWriteMs: mtimeMs }];
  } catch {
    // Without a first record nobody can say which server to ask.
    return [];
  }
}

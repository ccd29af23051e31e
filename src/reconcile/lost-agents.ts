import { fateOf, type Fate, type NamedServer } from './fate.ts';
import { openAgents, type OpenAgent, type ScanOptions } from './open-agents.ts';

/** An agent that nobody will end any more: its workflow is closed and its transcript has no terminal record. */
export interface LostAgent extends OpenAgent {
  /** For the terminal record and for people. */
  readonly reason: string;
}

/** Most agents that the server is asked about in one scan. */
const MAX_QUESTIONS = 1000;

/** Agents that only the files still call running, deepest first. Reads and asks; writes nothing. */
export async function findLostAgents(home: string, server: NamedServer, scan: ScanOptions): Promise<LostAgent[]> {
  const open = (await openAgents(home, scan)).slice(0, MAX_QUESTIONS);
  const running = new Set(open.map(({ meta }) => meta.agentId));
  const lost: LostAgent[] = [];
  for (const agent of open) {
    const reason = lossReason(await fateOf(server, agent), agent, running);
    if (reason !== undefined) lost.push({ ...agent, reason });
  }
  return lost.sort((a, b) => b.meta.depth - a.meta.depth);
}

/** Why an agent is lost; undefined while it, or somebody who answers for it, goes on. */
function lossReason(fate: Fate, { meta }: OpenAgent, running: ReadonlySet<string>): string | undefined {
  if (fate.kind === 'closed') return CLOSED_REASONS[fate.status] ?? `its workflow closed as ${fate.status}`;
  if (fate.kind !== 'forgotten') return undefined;
  // A server that lost its last commits starts the child again when its parent gets there.
  const hasParent = meta.parentAgentId !== null && running.has(meta.parentAgentId);
  return hasParent ? undefined : 'the server no longer knows its workflow';
}

const CLOSED_REASONS: Readonly<Record<string, string>> = {
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed out at the server',
};

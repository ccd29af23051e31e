import { NO_USAGE, addUsage } from '../protocol.ts';
import type { Usage } from '../protocol.ts';
import type { AgentMeta, AttemptRecord, TranscriptRecord, UsageRecord } from './records.ts';

/** An attempt whose cost is not known exactly, with the bounds of what the server may have counted. */
export interface UnsettledAttempt {
  readonly turn: number;
  readonly attempt: number;
  readonly inputTokensMin: number;
  readonly inputTokensMax: number;
  readonly outputTokensMin: number;
  readonly outputTokensMax: number;
}

export interface AgentUsage {
  /** Settled attempts, and of the cut ones what was seen before the cut. */
  readonly own: Usage;
  readonly unsettled: readonly UnsettledAttempt[];
}

type AgentLink = Pick<AgentMeta, 'agentId' | 'parentAgentId'>;
type AgentUsageOf = AgentLink & { readonly usage: Pick<AgentMeta['usage'], 'own'> };

/** What is known of one attempt. */
interface Spending {
  attempt?: AttemptRecord;
  readonly usages: UsageRecord[];
}

/** The agent's own bill, every branch and epoch included: what was sent costs, whatever became of the answer. */
export function usageOf(records: readonly TranscriptRecord[]): AgentUsage {
  const spendings = [...byAttempt(records).values()];
  return {
    own: spendings.flatMap(counted).reduce((sum, record) => addUsage(sum, record.usage), NO_USAGE),
    unsettled: spendings.filter((spending) => !isSettled(spending)).map(toUnsettled),
  };
}

/** Sum of `own` over an agent and everything below it. Never adds a subtree figure, so nothing counts twice. */
export function subtreeUsage(agents: readonly AgentUsageOf[], agentId: string): Usage {
  const members = subtreeOf(agents, agentId);
  if (members.length === 0) throw new Error(`No agent ${agentId} among the ${agents.length} given`);
  return members.reduce((sum, agent) => addUsage(sum, agent.usage.own), NO_USAGE);
}

/** An agent and everything below it, each once. */
export function subtreeOf<Agent extends AgentLink>(agents: readonly Agent[], agentId: string): Agent[] {
  const byId = new Map(agents.map((agent) => [agent.agentId, agent]));
  const inside = new Set<Agent>();
  const add = (agent: Agent | undefined) => {
    if (agent === undefined || inside.has(agent)) return;
    inside.add(agent);
    for (const child of byId.values()) if (child.parentAgentId === agent.agentId) add(child);
  };
  add(byId.get(agentId));
  return [...inside];
}

function byAttempt(records: readonly TranscriptRecord[]): Map<string, Spending> {
  const spendings = new Map<string, Spending>();
  const seen = new Set<string>();
  for (const record of records) {
    if ((record.type !== 'attempt' && record.type !== 'usage') || seen.has(record.id)) continue;
    seen.add(record.id);
    const key = attemptKey(record);
    const spending = spendings.get(key) ?? { usages: [] };
    spendings.set(key, spending);
    if (record.type === 'usage') spending.usages.push(record);
    else spending.attempt ??= record;
  }
  return spendings;
}

/** Turn and attempt repeat on a forked branch and need not go on over epochs; agent, epoch and branch are in the id. */
function attemptKey({ id, turn, attempt }: AttemptRecord | UsageRecord): string {
  return [...id.split(':').slice(0, 3), turn, attempt].join(':');
}

function isSettled(spending: Spending): boolean {
  return spending.usages.some((record) => record.settled);
}

/** A settled figure replaces what was seen of the same attempt; of several partial ones the furthest counts. */
function counted(spending: Spending): UsageRecord[] {
  if (isSettled(spending)) return spending.usages.filter((record) => record.settled);
  const furthest = furthestOf(spending);
  return furthest === undefined ? [] : [furthest];
}

function furthestOf({ usages }: Spending): UsageRecord | undefined {
  return usages.toSorted((a, b) => a.usage.outputTokens - b.usage.outputTokens).at(-1);
}

function toUnsettled(spending: Spending): UnsettledAttempt {
  const seen = furthestOf(spending)?.usage ?? NO_USAGE;
  const inputSeen = seen.inputTokens + seen.cacheReadTokens + seen.cacheWriteTokens;
  const { turn = 0, attempt = 0 } = spending.attempt ?? spending.usages[0] ?? {};
  return {
    turn,
    attempt,
    inputTokensMin: inputSeen,
    // A stream names its whole input at the start; one that was cut before that may have cost nothing or all of it.
    inputTokensMax: inputSeen > 0 ? inputSeen : (spending.attempt?.inputTokensMax ?? 0),
    outputTokensMin: seen.outputTokens,
    outputTokensMax: Math.max(seen.outputTokens, spending.attempt?.maxTokens ?? 0),
  };
}

import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { upsertSearchAttributes } from '@temporalio/workflow';
import type { SearchAttributeUpdatePair } from '@temporalio/common';
import { totalTokens } from '../protocol.ts';
import type { AgentState } from '../protocol.ts';

const AGENT_TYPE = defineSearchAttributeKey('AgentType', 'KEYWORD');
const AGENT_STATUS = defineSearchAttributeKey('AgentStatus', 'KEYWORD');
const AGENT_DEPTH = defineSearchAttributeKey('AgentDepth', 'INT');
const AGENT_TOKENS = defineSearchAttributeKey('AgentTokens', 'INT');
const AGENT_COST_USD = defineSearchAttributeKey('AgentCostUsd', 'DOUBLE');
const AGENT_WAITING = defineSearchAttributeKey('AgentWaiting', 'KEYWORD');

/** What a child is started with; undefined where the namespace does not know the attributes (a start would be refused). */
export function startAttributes(
  isKnown: boolean | undefined,
  agentType: string,
  depth: number,
): TypedSearchAttributes | undefined {
  if (!isKnown) return undefined;
  return new TypedSearchAttributes([
    { key: AGENT_TYPE, value: agentType },
    { key: AGENT_DEPTH, value: depth },
    { key: AGENT_STATUS, value: 'running' },
  ]);
}

/** What the namespace shows of an agent: only what has changed is written, as one event, at most once a turn. */
export class ShownAttributes {
  readonly #isKnown: boolean;
  readonly #shown = new Map<string, unknown>([[AGENT_STATUS.name, 'running']]);

  constructor(isKnown: boolean | undefined) {
    this.#isKnown = isKnown === true;
  }

  update({ usage, status, waitingFor }: AgentState): void {
    if (!this.#isKnown) return;
    const changed = [
      { key: AGENT_STATUS, value: status },
      { key: AGENT_TOKENS, value: totalTokens(usage) },
      { key: AGENT_COST_USD, value: usage.costUsd },
      { key: AGENT_WAITING, value: waitingFor === '' ? null : waitingFor },
    ].filter(({ key, value }) => (this.#shown.get(key.name) ?? null) !== value);
    if (changed.length === 0) return;
    for (const { key, value } of changed) this.#shown.set(key.name, value);
    upsertSearchAttributes(changed as SearchAttributeUpdatePair[]);
  }
}

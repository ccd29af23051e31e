import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { upsertSearchAttributes } from '@temporalio/workflow';
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

/** One event; called at most once a turn. */
export function showAttributes(isKnown: boolean | undefined, state: AgentState): void {
  if (!isKnown) return;
  const { usage } = state;
  upsertSearchAttributes([
    { key: AGENT_STATUS, value: state.status },
    {
      key: AGENT_TOKENS,
      value: usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
    },
    { key: AGENT_COST_USD, value: usage.costUsd },
    { key: AGENT_WAITING, value: state.waitingFor === '' ? null : state.waitingFor },
  ]);
}

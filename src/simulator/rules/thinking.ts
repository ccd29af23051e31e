import { isOwnRedactedData, signThinking } from '../signature.ts';
import { hasThinkingMark } from '../tool-use-id.ts';
import { blocksOf } from '../wire.ts';
import type { Block, Message, RequestBody } from '../wire.ts';

/** Thinking blocks come back as they were signed and, in the current tool loop, first. */
export function thinkingProblem(body: RequestBody): string | undefined {
  return budgetProblem(body) ?? signatureProblem(body.messages) ?? orderProblem(body);
}

function budgetProblem({ thinking, max_tokens: maxTokens, tool_choice: choice }: RequestBody): string | undefined {
  if (thinking?.type === 'enabled') {
    const budget = thinking.budget_tokens ?? 0;
    if (budget < 1024) return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
    if (budget >= maxTokens) return '`max_tokens` must be greater than `thinking.budget_tokens`';
  }
  const isOn = thinking !== undefined && thinking.type !== 'disabled';
  if (isOn && (choice?.type === 'any' || choice?.type === 'tool')) {
    return 'Thinking may not be enabled when tool_choice forces tool use.';
  }
  return undefined;
}

function signatureProblem(messages: readonly Message[]): string | undefined {
  for (const [index, message] of messages.entries()) {
    for (const [position, block] of blocksOf(message.content).entries()) {
      if (isThinking(block) && !isGenuine(block)) return invalidBlock(index, position, block.type);
    }
  }
  return undefined;
}

function invalidBlock(index: number, position: number, type: string): string {
  const what =
    type === 'thinking' ? 'Invalid `signature` in `thinking` block' : 'Invalid `data` in `redacted_thinking` block';
  return `messages.${index}.content.${position}: ${what}. Thinking blocks must be sent back unchanged.`;
}

function orderProblem({ messages, thinking }: RequestBody): string | undefined {
  const start = currentLoopStart(messages);
  for (const [offset, message] of messages.slice(start).entries()) {
    if (message.role !== 'assistant') continue;
    const problem = messageOrderProblem(blocksOf(message.content), thinking?.type === 'enabled');
    if (problem !== undefined) return `messages.${start + offset}.content.${problem}`;
  }
  return undefined;
}

function messageOrderProblem(blocks: readonly Block[], mustThink: boolean): string | undefined {
  const firstOther = blocks.findIndex((block) => !isThinking(block));
  const late = blocks.findIndex((block, index) => isThinking(block) && index > firstOther);
  if (firstOther >= 0 && late >= 0)
    return `${late}: thinking blocks must come before all other blocks of their message`;
  const thought = blocks.some((block) => block.type === 'tool_use' && hasThinkingMark(String(block.id)));
  const first = blocks[0];
  if (mustThink && thought && first && !isThinking(first)) {
    return `0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.type}\`. When \`thinking\` is enabled, an \`assistant\` message of the current tool loop must start with its thinking block`;
  }
  return undefined;
}

/** After the last user message that is more than tool results. */
function currentLoopStart(messages: readonly Message[]): number {
  const isPrompt = (message: Message): boolean =>
    message.role === 'user' && !blocksOf(message.content).some((block) => block.type === 'tool_result');
  return messages.findLastIndex(isPrompt) + 1;
}

function isThinking(block: Block): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

function isGenuine(block: Block): boolean {
  return block.type === 'thinking'
    ? block.signature === signThinking(String(block.thinking))
    : isOwnRedactedData(String(block.data));
}

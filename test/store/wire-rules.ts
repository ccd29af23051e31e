import type { WireMessage } from '../../src/store/messages.ts';
import type { ContentBlock } from '../../src/store/records.ts';

/** Why the Messages API would refuse this conversation; written apart from the code that builds it. */
export function wireProblem(messages: readonly WireMessage[]): string | undefined {
  if (messages.length === 0) return 'no message';
  if (messages[0]?.role !== 'user') return 'starts with the assistant';
  const ids = messages.flatMap(({ content }) => content.filter(isUse).map((block) => block['id']));
  if (new Set(ids).size !== ids.length) return 'a tool_use id is there twice';
  for (const [index, message] of messages.entries()) {
    const problem = messageProblem(message, messages[index - 1], messages[index + 1]);
    if (problem !== undefined) return `message ${index}: ${problem}`;
  }
  return undefined;
}

function messageProblem(message: WireMessage, before?: WireMessage, after?: WireMessage): string | undefined {
  const { role, content } = message;
  if (content.length === 0) return 'empty';
  if (before?.role === role && !(role === 'assistant' && isThinking(content[0]))) return 'same role twice';
  if (/\p{Surrogate}|\0/u.test(allStrings(content).join(''))) return 'not well-formed';
  if (content.some((block) => 'cache_control' in block)) return 'marked';
  return (
    content.map(blockProblem).find(Boolean) ??
    (role === 'user' ? userProblem(content, before) : assistantProblem(content, after))
  );
}

function blockProblem(block: ContentBlock): string | undefined {
  if (block.type === 'text') return isBlank(block['text']) ? 'blank text' : undefined;
  if (block.type === 'thinking') return block['signature'] ? undefined : 'unsigned thinking';
  if (block.type === 'redacted_thinking') return block['data'] ? undefined : 'redacted thinking without data';
  if (block.type === 'tool_result') return resultProblem(block['content']);
  if (block.type !== 'tool_use') return undefined;
  const { id, name, input } = block;
  if (!/^[a-zA-Z0-9_-]+$/.test(String(id))) return 'bad id';
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(String(name))) return 'bad name';
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? undefined : 'input is no object';
}

function resultProblem(content: unknown): string | undefined {
  if (typeof content === 'string') return isBlank(content) ? 'blank result' : undefined;
  if (!Array.isArray(content) || content.length === 0) return 'empty result';
  return content.some((part: ContentBlock) => part.type === 'text' && isBlank(part['text'])) ? 'blank part' : undefined;
}

function userProblem(content: readonly ContentBlock[], before?: WireMessage): string | undefined {
  const asked = before?.content.filter(isUse).map((block) => block['id']) ?? [];
  const firstOther = content.findIndex((block) => block.type !== 'tool_result');
  const results = content.filter((block) => block.type === 'tool_result').map((block) => block['tool_use_id']);
  if (firstOther >= 0 && content.slice(firstOther).some((block) => block.type === 'tool_result')) return 'late result';
  if (JSON.stringify(results) !== JSON.stringify(asked)) return `results ${String(results)} for ${String(asked)}`;
  return content.some((block) => isThinking(block) || isUse(block)) ? 'assistant block' : undefined;
}

function assistantProblem(content: readonly ContentBlock[], after?: WireMessage): string | undefined {
  if (isThinking(content.at(-1))) return 'ends in thinking';
  if (content.some((block) => block.type === 'tool_result')) return 'result from the assistant';
  return content.some(isUse) && after?.role !== 'user' ? 'unanswered call' : undefined;
}

function isUse(block: ContentBlock): boolean {
  return block.type === 'tool_use';
}

function isThinking(block: ContentBlock | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking';
}

function isBlank(value: unknown): boolean {
  return typeof value !== 'string' || value.trim() === '';
}

function allStrings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...allStrings(item)]);
}

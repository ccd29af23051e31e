import type Anthropic from '@anthropic-ai/sdk';
import { isThinking, withoutMark } from '../store/blocks.ts';
import type { WireMessage } from '../store/messages.ts';
import type { ContentBlock } from '../store/records.ts';
import { mapStrings, toSafeText } from '../store/text.ts';
import type { ModelRequest, ToolSchema } from './model.ts';

type Params = Anthropic.MessageCreateParamsStreaming;

const MARK = { cache_control: { type: 'ephemeral' } } as const;

/**
 * A request as the SDK sends it. The cache is told to keep everything up to four places: system prompt, tools, and
 * the last two user messages, so that this turn reads what the turn before wrote. Marks are added beside the content,
 * which stays the same bytes. Changes nothing of its input.
 */
export function toParams(request: ModelRequest): Params {
  const tools = toTools(request);
  const hasTools = tools.length > 0;
  return {
    model: request.model,
    max_tokens: request.maxTokens,
    ...(hasTools && { tools }),
    ...(hasTools && request.toolChoice === 'none' && { tool_choice: { type: 'none' } }),
    ...(request.system.trim() !== '' && { system: [{ type: 'text', text: toSafeText(request.system), ...MARK }] }),
    messages: toSdkMessages(withMarks(withoutTrailingSpace(request.messages))),
    stream: true,
  };
}

/** Stands for tools that are gone: the API refuses calls and results in a request without any tool. */
const NO_TOOLS: ToolSchema = {
  name: 'unavailable',
  description: 'There are no tools. Answer in text.',
  input_schema: { type: 'object' },
};

function toTools({ tools, messages }: ModelRequest): Anthropic.Tool[] {
  const hasCalls = messages.some(({ content }) => content.some((block) => block.type === 'tool_use'));
  const offered = tools.length === 0 && hasCalls ? [NO_TOOLS] : tools;
  return offered.map((tool, index) => {
    const { name, description, input_schema: schema } = mapStrings(tool, toSafeText);
    const isLast = index === offered.length - 1;
    return { name, description, input_schema: { ...schema, type: 'object' as const }, ...(isLast && MARK) };
  });
}

/** The API refuses a final assistant message that ends in white space. */
function withoutTrailingSpace(messages: readonly WireMessage[]): readonly WireMessage[] {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.type !== 'text') return messages;
  const text = String(block['text']).trimEnd();
  const content = [...last.content.slice(0, -1), { ...block, text }];
  return [...messages.slice(0, -1), { ...last, content }];
}

function withMarks(messages: readonly WireMessage[]): readonly WireMessage[] {
  const users = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  const marked = users.slice(-2);
  return messages.map(({ role, content }, index) => {
    const plain = content.map(withoutMark);
    return { role, content: marked.includes(index) ? withMark(plain) : plain };
  });
}

/** Thinking cannot be marked; nothing else the user sends cannot. */
function withMark(content: readonly ContentBlock[]): readonly ContentBlock[] {
  const last = content.at(-1);
  return last === undefined || isThinking(last) ? content : [...content.slice(0, -1), { ...last, ...MARK }];
}

/** Blocks are kept open, so that what a newer API sent goes back whole; the SDK's types name only those it knows. */
function toSdkMessages(messages: readonly WireMessage[]): Params['messages'] {
  return messages as unknown as Params['messages'];
}

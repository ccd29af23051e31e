import { cleanText, isObject, isThinking, isWholeThinking, toRawInput, withClosingText } from '../store/blocks.ts';
import type { ContentBlock } from '../store/records.ts';
import { mapStrings, toWellFormed } from '../store/text.ts';
import type { ReceivedMessage } from './accumulator.ts';
import type { ModelReply } from './model.ts';

export { rawInputOf } from '../store/blocks.ts';

/** What is kept of an answer: its blocks as they came, without those the API would not take back. */
export function toReply(message: ReceivedMessage, costUsd: number | null, requestId?: string): ModelReply {
  return {
    messageId: message.id,
    model: message.model,
    content: cleanContent(message.content),
    stop: message.stop,
    ...(message.stopDetails && { stopDetails: message.stopDetails }),
    usage: { ...message.usage, requests: 1, costUsd },
    ...(requestId !== undefined && { requestId }),
  };
}

/**
 * Empty text and unsigned thinking go; a `tool_use` without an object as input keeps what it had as raw text; nothing
 * left, or only thinking, gets a line of text. A NUL stays: it may be what a file is to hold.
 */
export function cleanContent(content: readonly ContentBlock[]): readonly ContentBlock[] {
  const blocks = content.flatMap((block) => {
    if (isThinking(block)) return isWholeThinking(block) ? [block] : [];
    if (block.type === 'text') return cleanText(block);
    const wellFormed = mapStrings(block, toWellFormed);
    return [block.type === 'tool_use' ? withObjectInput(wellFormed) : wellFormed];
  });
  return withClosingText(blocks);
}

/**
 * The call that an output or context limit may have cut: the last block. Its JSON may parse and still be half of what
 * was meant, so it is answered with an error and never run.
 */
export function cutToolUseId({ stop, content }: Pick<ModelReply, 'stop' | 'content'>): string | undefined {
  const last = content.at(-1);
  const isCut = stop === 'max_tokens' || stop === 'model_context_window_exceeded';
  return isCut && last?.type === 'tool_use' ? String(last['id']) : undefined;
}

function withObjectInput(block: ContentBlock): ContentBlock {
  const { input } = block;
  if (isObject(input)) return block;
  return { ...block, input: input === undefined ? {} : toRawInput(JSON.stringify(input)) };
}

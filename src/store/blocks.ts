import type { ContentBlock } from './records.ts';
import { mapStrings, toSafeText } from './text.ts';

/** Stands where an assistant message has nothing the API would take. */
export const NO_TEXT: ContentBlock = { type: 'text', text: '(no text)' };

/** Content of a result that came back empty; the API refuses an empty error. */
export const NO_OUTPUT = '(no output)';

/** A `tool_use` input that was no JSON object is kept under this key, so that the block can be sent back. */
const RAW_INPUT = '__raw';

export function toRawInput(text: string): Readonly<Record<string, unknown>> {
  return { [RAW_INPUT]: text };
}

/** The text of an input that could not be read as a JSON object: such a call is answered with an error, never run. */
export function rawInputOf(input: unknown): string | undefined {
  if (!isObject(input) || Object.keys(input).length !== 1) return undefined;
  const raw = input[RAW_INPUT];
  return typeof raw === 'string' ? raw : undefined;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isThinking(block: ContentBlock): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking';
}

/** Thinking goes back unchanged or not at all: without its signature the API refuses the whole request. */
export function isWholeThinking(block: ContentBlock): boolean {
  const required = block.type === 'thinking' ? [block['signature']] : [block['data']];
  const isSigned = required.every((field) => typeof field === 'string' && field !== '');
  return isSigned && mapStrings(block, toSafeText) === block;
}

/** A text block that says something, or nothing at all. */
export function cleanText(block: ContentBlock): ContentBlock[] {
  const text = block['text'];
  return typeof text === 'string' && text.trim() !== '' ? [mapStrings(block, toSafeText)] : [];
}

/** Ends with something other than thinking and is never empty, as the API asks of every assistant message. */
export function withClosingText(content: readonly ContentBlock[]): readonly ContentBlock[] {
  const last = content.at(-1);
  return last === undefined || isThinking(last) ? [...content, NO_TEXT] : content;
}

/** Marks are set anew for every request, at most four. */
export function withoutMark(block: ContentBlock): ContentBlock {
  if (!('cache_control' in block)) return block;
  const { cache_control: _mark, ...rest } = block;
  return rest;
}

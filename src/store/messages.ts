import {
  NO_OUTPUT,
  cleanText,
  isObject,
  isThinking,
  isWholeThinking,
  toRawInput,
  withClosingText,
  withoutMark,
} from './blocks.ts';
import type {
  AssistantMessageRecord,
  ContentBlock,
  RecordedCall,
  TranscriptRecord,
  UserMessageRecord,
} from './records.ts';
import { byteLength, mapStrings, toSafeText } from './text.ts';
import { uniqueToolUseIds } from './tool-use-ids.ts';

export { rawInputOf } from './blocks.ts';
export { uniqueToolUseIds, usedToolUseIds } from './tool-use-ids.ts';

/** One message as it is sent. */
export interface WireMessage {
  readonly role: 'user' | 'assistant';
  readonly content: readonly ContentBlock[];
}

export interface WireOptions {
  /** `tool_use` ids whose results are replaced by a line that says what was there. */
  readonly stubbed?: ReadonlySet<string>;
  /** The model that is asked; thinking of another one is left out. Default: all thinking stays. */
  readonly model?: string;
  /** Leave out all thinking: the one repair after the API refused a thinking block. */
  readonly withoutThinking?: boolean;
}

/** Result of a call whose own result was never recorded. */
export const INTERRUPTED = 'interrupted; effects unknown';

/** A `tool_use` block as recorded, waiting for its result; `id` is the id it is sent with. */
interface OpenUse {
  readonly recordedId: unknown;
  readonly id: string;
  readonly name: string;
  readonly call?: RecordedCall;
}

/**
 * A conversation as the Messages API takes it, whatever the records are like: starts with the user, each `tool_use`
 * answered first thing in the next message, no empty text, well-formed Unicode, thinking unchanged. Earlier messages
 * come out the same when records are added, so that the prompt cache holds.
 */
export function toWireMessages(records: readonly TranscriptRecord[], options: WireOptions = {}): WireMessage[] {
  const messages: WireMessage[] = [];
  const used = new Set<string>();
  let open: readonly OpenUse[] = [];
  for (const group of toGroups(records)) {
    if (group.role === 'user') {
      push(messages, 'user', userContent(group.records, open, options));
      open = [];
      continue;
    }
    for (const record of group.records) {
      if (open.length > 0) push(messages, 'user', userContent([], open, options));
      const content = assistantContent(record, options);
      const sent = uniqueToolUseIds(content, used);
      push(messages, 'assistant', sent);
      open = toOpenUses(record, content, sent);
      for (const { id } of open) used.add(id);
    }
  }
  if (open.length > 0) push(messages, 'user', userContent([], open, options));
  return messages[0]?.role === 'assistant' ? [text('(the conversation goes on)'), ...messages] : messages;
}

type Group =
  | { readonly role: 'user'; readonly records: UserMessageRecord[] }
  | { readonly role: 'assistant'; readonly records: AssistantMessageRecord[] };

/** Neighbouring messages of one role. */
function toGroups(records: readonly TranscriptRecord[]): Group[] {
  const groups: Group[] = [];
  for (const record of records) {
    if (record.type !== 'message') continue;
    const last = groups.at(-1);
    if (record.role === 'user') {
      if (last?.role === 'user') last.records.push(record);
      else groups.push({ role: 'user', records: [record] });
    } else if (last?.role === 'assistant') last.records.push(record);
    else groups.push({ role: 'assistant', records: [record] });
  }
  return groups;
}

/**
 * Adds to the last message when the role is the same. A continued reply that starts with thinking of its own stays a
 * message of its own: the API joins the two, and thinking has to come first in its message.
 */
function push(messages: WireMessage[], role: WireMessage['role'], content: readonly ContentBlock[]): void {
  const last = messages.at(-1);
  const [first] = content;
  const startsAnew = role === 'assistant' && first !== undefined && isThinking(first);
  if (last?.role !== role || startsAnew) messages.push({ role, content });
  else messages[messages.length - 1] = { role, content: [...last.content, ...content] };
}

function text(words: string): WireMessage {
  return { role: 'user', content: [{ type: 'text', text: words }] };
}

function assistantContent(record: AssistantMessageRecord, options: WireOptions): readonly ContentBlock[] {
  const keepsThinking =
    !options.withoutThinking && (options.model === undefined || isSameModel(options.model, record.model));
  const blocks = record.content.map(withoutMark).flatMap((block) => {
    if (isThinking(block)) return keepsThinking && isWholeThinking(block) ? [block] : [];
    if (block.type === 'text') return cleanText(block);
    if (block.type === 'tool_use') return [cleanToolUse(block)];
    return block.type === 'tool_result' ? [] : [mapStrings(block, toSafeText)];
  });
  return withClosingText(blocks);
}

/** An invented name or input would be refused when it is sent back, though the call was answered with an error. */
function cleanToolUse(block: ContentBlock): ContentBlock {
  const { name, input } = block;
  const isPlain = typeof name === 'string' && /^[A-Za-z0-9_-]{1,128}$/.test(name);
  const sentName = isPlain
    ? name
    : String(name ?? '')
        .replace(/[^A-Za-z0-9_-]/g, '_')
        .slice(0, 128) || 'unnamed';
  const sentInput = isObject(input) ? input : toRawInput(JSON.stringify(input) ?? '');
  const isSame = sentName === name && sentInput === input;
  return mapStrings(isSame ? block : { ...block, name: sentName, input: sentInput }, toSafeText);
}

/** `sent` has the blocks of `content` in the same places, perhaps with other ids. */
function toOpenUses(
  record: AssistantMessageRecord,
  content: readonly ContentBlock[],
  sent: readonly ContentBlock[],
): OpenUse[] {
  return sent.flatMap((block, index) => {
    if (block.type !== 'tool_use') return [];
    const recordedId = content[index]?.['id'];
    const call = record.calls.find(({ toolUseId }) => toolUseId === recordedId);
    return [{ recordedId, id: String(block['id']), name: String(block['name']), call }];
  });
}

/** Results first, one for each open use and in its order; then everything else that was said. */
function userContent(
  records: readonly UserMessageRecord[],
  open: readonly OpenUse[],
  options: WireOptions,
): readonly ContentBlock[] {
  const blocks = records.flatMap((record) => record.content).map(withoutMark);
  const unclaimed = blocks.filter((block) => block.type === 'tool_result');
  const results = open.map((use) => {
    const index = unclaimed.findIndex((block) => block['tool_use_id'] === use.recordedId);
    const [found] = index < 0 ? [] : unclaimed.splice(index, 1);
    return found ? toResult(found, use, records, options) : interrupted(use);
  });
  const content = [...results, ...blocks.flatMap(cleanUserBlock)];
  return content.length > 0 ? content : text('(empty message)').content;
}

/** Blocks that only an assistant may send are left out; results are placed by `userContent`. */
function cleanUserBlock(block: ContentBlock): ContentBlock[] {
  if (block.type === 'text') return cleanText(block);
  const isMisplaced = isThinking(block) || ['tool_use', 'server_tool_use', 'tool_result'].includes(block.type);
  return isMisplaced ? [] : [mapStrings(block, toSafeText)];
}

function interrupted({ id }: OpenUse): ContentBlock {
  return { type: 'tool_result', tool_use_id: id, content: INTERRUPTED, is_error: true };
}

function toResult(
  block: ContentBlock,
  use: OpenUse,
  records: readonly UserMessageRecord[],
  { stubbed }: WireOptions,
): ContentBlock {
  const isStub = typeof use.recordedId === 'string' && stubbed?.has(use.recordedId) === true;
  const content = isStub ? stubText(block, use, records) : resultContent(block['content']);
  return { ...block, tool_use_id: use.id, content };
}

function resultContent(content: unknown): string | readonly ContentBlock[] {
  if (typeof content === 'string') return content.trim() === '' ? NO_OUTPUT : toSafeText(content);
  const parts = Array.isArray(content) ? content.filter(isBlock) : [];
  const cleaned = parts
    .map(withoutMark)
    .flatMap((part) => (part.type === 'text' ? cleanText(part) : [mapStrings(part, toSafeText)]));
  return cleaned.length > 0 ? cleaned : NO_OUTPUT;
}

function isBlock(value: unknown): value is ContentBlock {
  return isObject(value) && typeof value['type'] === 'string';
}

/** Names the call and how to see its result again; the same text every time, for the cache. */
function stubText(block: ContentBlock, { name, call }: OpenUse, records: readonly UserMessageRecord[]): string {
  const what = call ? `${call.callId}, ${call.summary}` : name;
  const bytes = byteLength(JSON.stringify(block['content'] ?? ''));
  const results = records.flatMap((record) => record.results ?? []);
  const spilledTo = results.find((result) => result.callId === call?.callId)?.facts?.spilledTo;
  return toSafeText(`[Result removed to save context: ${what} (${bytes} bytes). ${seeAgain(call, spilledTo)}]`);
}

function seeAgain(call: RecordedCall | undefined, spilledTo: string | undefined): string {
  if (spilledTo !== undefined) return `The whole text is in ${spilledTo}.`;
  if (call?.kind === 'read') return 'Make the call again if you need it.';
  return 'What it did still stands; look at its effects rather than repeating it.';
}

/** An alias and the dated name it stands for are one model. */
function isSameModel(a: string, b: string): boolean {
  const family = (model: string): string => model.replace(/(-latest|[-@]\d{8})$/, '');
  return a === b || family(a) === family(b);
}

import { sha256 } from './json.ts';
import { toTokens } from './prompt-elements.ts';
import type { InputUsage } from './prompt-cache.ts';
import type { Call, Step, View } from './scenario.ts';
import { signThinking, toRedactedData } from './signature.ts';
import { toToolUseId } from './tool-use-id.ts';
import type { Block, Usage } from './wire.ts';

/** A block of a reply; a call's input is kept as the JSON text that is sent. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly json: string }
  | { readonly type: 'other'; readonly block: Block };

export interface Reply {
  readonly id: string;
  readonly model: string;
  readonly blocks: readonly ReplyBlock[];
  readonly stopReason: string;
  readonly stopSequence: string | null;
  readonly usage: Usage;
}

interface Making {
  readonly step: Step;
  readonly view: View;
  readonly input: InputUsage;
  readonly malformedInput: boolean;
}

export function toReply({ step, view, input, malformedInput }: Making): Reply {
  const wanted = toBlocks(step, view, malformedInput);
  const blocks = step.stopReason === undefined ? withinTokens(wanted, view.maxTokens) : wanted;
  const isCut = characters(blocks) < characters(wanted);
  const stopReason = step.stopReason ?? (isCut ? 'max_tokens' : hasCalls(blocks) ? 'tool_use' : 'end_turn');
  return {
    id: `msg_sim_${sha256(`${view.key}/${view.turn}`).slice(0, 20)}`,
    model: view.model,
    blocks,
    stopReason,
    stopSequence: step.stopSequence ?? null,
    usage: { ...input, output_tokens: outputTokens(characters(blocks)), ...step.usage },
  };
}

/** What a reply costs: never nothing, once it has begun. */
export function outputTokens(sent: number): number {
  return Math.max(1, toTokens(sent));
}

/** The whole message, as a non-streaming answer has it. */
export function toMessage(reply: Reply): Record<string, unknown> {
  return {
    ...toMessageHead(reply),
    content: reply.blocks.map(toContentBlock),
    stop_reason: reply.stopReason,
    stop_sequence: reply.stopSequence,
    stop_details: toStopDetails(reply),
    usage: toWireUsage(reply.usage),
  };
}

/** The message before its first block. */
export function toMessageHead(reply: Reply): Record<string, unknown> {
  return {
    id: reply.id,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [],
    container: null,
    diagnostics: null,
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: toWireUsage({ ...reply.usage, output_tokens: 1 }),
  };
}

export function toStopDetails(reply: Reply): Record<string, unknown> | null {
  return reply.stopReason === 'refusal' ? { type: 'refusal', category: null, explanation: null } : null;
}

/** What a block costs in characters. */
export function blockText(block: ReplyBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'thinking':
      return block.thinking;
    case 'tool_use':
      return block.json;
    case 'other':
      return JSON.stringify(block.block);
  }
}

function toWireUsage(usage: Usage): Record<string, unknown> {
  return {
    ...usage,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cache_creation_input_tokens,
      ephemeral_1h_input_tokens: 0,
    },
    inference_geo: null,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: 'standard',
    speed: null,
  };
}

function toBlocks(step: Step, view: View, malformedInput: boolean): ReplyBlock[] {
  const hasThinking = step.thinking !== undefined || step.redacted !== undefined;
  const id = (index: number): string => toToolUseId({ conversation: view.key, turn: view.turn, index, hasThinking });
  const calls = step.calls ?? [];
  return [
    ...(step.thinking === undefined ? [] : [toThinking(step.thinking)]),
    ...(step.redacted === undefined ? [] : [toRedacted(step.redacted)]),
    ...(step.text === undefined ? [] : [{ type: 'text' as const, text: step.text }]),
    ...calls.map((call, index) => toToolUse(call, id(index), malformedInput)),
    ...(step.blocks ?? []).map((block, index) => fromGivenBlock(block, id(calls.length + index))),
  ];
}

function toThinking(thinking: string): ReplyBlock {
  return { type: 'thinking', thinking, signature: signThinking(thinking) };
}

function toRedacted(thinking: string): ReplyBlock {
  return { type: 'other', block: { type: 'redacted_thinking', data: toRedactedData(thinking) } };
}

function toToolUse({ name, input, rawInput, id: forcedId }: Call, id: string, malformed: boolean): ReplyBlock {
  const json = rawInput ?? JSON.stringify(input ?? {});
  return { type: 'tool_use', id: forcedId ?? id, name, json: malformed ? json.slice(0, json.length / 2) : json };
}

function fromGivenBlock(block: Block, id: string): ReplyBlock {
  const { type, text, thinking, signature, name, input } = block;
  if (type === 'text') return { type, text: String(text) };
  if (type === 'thinking') {
    const words = String(thinking);
    return { type, thinking: words, signature: typeof signature === 'string' ? signature : signThinking(words) };
  }
  if (type === 'tool_use')
    return toToolUse({ name: String(name), input }, typeof block.id === 'string' ? block.id : id, false);
  return { type: 'other', block };
}

/** As a real model, it stops in the middle when max_tokens is reached. */
function withinTokens(blocks: readonly ReplyBlock[], maxTokens: number): ReplyBlock[] {
  let left = maxTokens * 4;
  const kept: ReplyBlock[] = [];
  for (const block of blocks) {
    if (left <= 0) break;
    kept.push(cutBlock(block, left));
    left -= blockText(block).length;
  }
  return kept;
}

function cutBlock(block: ReplyBlock, length: number): ReplyBlock {
  if (blockText(block).length <= length) return block;
  if (block.type === 'text') return { ...block, text: wholeCharacters(block.text, length) };
  if (block.type === 'tool_use') return { ...block, json: wholeCharacters(block.json, length) };
  return block.type === 'thinking' ? toThinking(wholeCharacters(block.thinking, length)) : block;
}

function wholeCharacters(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

function characters(blocks: readonly ReplyBlock[]): number {
  return blocks.reduce((sum, block) => sum + blockText(block).length, 0);
}

function hasCalls(blocks: readonly ReplyBlock[]): boolean {
  return blocks.some((block) => block.type === 'tool_use');
}

function toContentBlock(block: ReplyBlock): Record<string, unknown> {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, citations: null };
    case 'tool_use':
      return {
        type: 'tool_use',
        id: block.id,
        name: block.name,
        input: parsedInput(block.json),
        caller: { type: 'direct' },
      };
    case 'thinking':
      return { ...block };
    case 'other':
      return { ...block.block };
  }
}

/** Broken JSON can only be streamed; in a whole message it is an empty input. */
function parsedInput(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return {};
  }
}

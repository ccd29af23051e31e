import { blockText, toMessageHead, toStopDetails } from './reply.ts';
import type { Reply, ReplyBlock } from './reply.ts';
import type { Anchor } from './scenario.ts';

/** One server-sent event of a reply. */
export interface StreamEvent {
  readonly data: { readonly type: string; readonly [field: string]: unknown };
  /** The place it marks, for faults. */
  readonly anchor?: Anchor;
  /** Characters of output in it. */
  readonly output: number;
}

export function toEvents(reply: Reply): StreamEvent[] {
  return [
    { data: { type: 'message_start', message: toMessageHead(reply) }, anchor: 'message_start', output: 0 },
    PING,
    ...reply.blocks.flatMap(toBlockEvents),
    { data: toMessageDelta(reply), anchor: 'message_delta', output: 0 },
    { data: { type: 'message_stop' }, output: 0 },
  ];
}

export const PING: StreamEvent = { data: { type: 'ping' }, output: 0 };

export function toErrorEvent(type: string, message: string): StreamEvent {
  return { data: { type: 'error', error: { type, message } }, output: 0 };
}

export function toEventText({ data }: StreamEvent): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function toMessageDelta(reply: Reply): StreamEvent['data'] {
  return {
    type: 'message_delta',
    delta: {
      stop_reason: reply.stopReason,
      stop_sequence: reply.stopSequence,
      stop_details: toStopDetails(reply),
      container: null,
    },
    usage: { ...reply.usage, server_tool_use: null, output_tokens_details: null },
  };
}

function toBlockEvents(block: ReplyBlock, index: number): StreamEvent[] {
  return [
    { data: { type: 'content_block_start', index, content_block: toEmptyBlock(block) }, output: openingOutput(block) },
    ...toDeltas(block).map(({ delta, anchor, output }) => ({
      data: { type: 'content_block_delta', index, delta },
      anchor,
      output,
    })),
    { data: { type: 'content_block_stop', index }, anchor: 'block_stop', output: 0 },
  ];
}

function toEmptyBlock(block: ReplyBlock): Record<string, unknown> {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: '', citations: null };
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'tool_use':
      return { type: 'tool_use', id: block.id, name: block.name, input: {}, caller: { type: 'direct' } };
    case 'other':
      return { ...block.block };
  }
}

/** Blocks without deltas are sent whole at their start. */
function openingOutput(block: ReplyBlock): number {
  return block.type === 'other' ? blockText(block).length : 0;
}

interface Delta {
  readonly delta: Record<string, string>;
  readonly anchor?: Anchor;
  readonly output: number;
}

function toDeltas(block: ReplyBlock): Delta[] {
  switch (block.type) {
    case 'text':
      return pieces(block.text).map((text) => delta('text', { type: 'text_delta', text }, text));
    case 'tool_use':
      return pieces(block.json).map((json) =>
        delta('input_json', { type: 'input_json_delta', partial_json: json }, json),
      );
    case 'thinking':
      return [
        ...pieces(block.thinking).map((text) => delta('thinking', { type: 'thinking_delta', thinking: text }, text)),
        { delta: { type: 'signature_delta', signature: block.signature }, output: 0 },
      ];
    case 'other':
      return [];
  }
}

function delta(anchor: Anchor, fields: Record<string, string>, sent: string): Delta {
  return { delta: fields, anchor, output: sent.length };
}

/** At least two pieces where there are two characters, so that a stream can be cut in the middle; no character halved. */
function pieces(text: string): string[] {
  const size = Math.min(Math.ceil(text.length / 2), Math.max(16, Math.ceil(text.length / 8)));
  const list: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = at + size;
    const splitsPair = /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) && end < text.length;
    list.push(text.slice(at, splitsPair ? end + 1 : end));
    at = splitsPair ? end + 1 : end;
  }
  return list;
}

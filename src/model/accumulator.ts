import { isObject, toRawInput } from '../store/blocks.ts';
import type { ContentBlock } from '../store/records.ts';
import type { SeenTokens, TokenCounts } from './model.ts';

/** One parsed event of a message stream. */
export type StreamEvent = { readonly type: string } & Readonly<Record<string, unknown>>;

/** A message whose every block and whose stop event have come. */
export interface ReceivedMessage {
  readonly id: string;
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop: string;
  readonly stopDetails?: Readonly<Record<string, unknown>>;
  readonly usage: TokenCounts;
}

export interface Accumulator {
  /** Throws StreamProblem for an event that cannot follow. */
  add(event: StreamEvent): void;
  /** The message, once `message_stop` has come; throws StreamProblem when a part of it is missing. */
  finish(): ReceivedMessage;
  seen(): SeenTokens;
  outputChars(): number;
  lastText(): string;
}

/** The stream breaks the protocol. */
export class StreamProblem extends Error {
  override readonly name = 'StreamProblem';
}

const LAST_TEXT_CHARS = 200;

/**
 * Puts a message together from its events. Done here and not by the SDK's helper, which reads half a tool input as if
 * it were whole and does not tell it from a good one.
 */
export function createAccumulator(): Accumulator {
  const state: State = { blocks: new Map(), open: new Set(), usage: {}, stop: {}, outputChars: 0, lastText: '' };
  return {
    add: (event) => HANDLERS[event.type]?.(state, event),
    finish: () => toMessage(state),
    seen: () => toSeen(state.usage),
    outputChars: () => state.outputChars,
    lastText: () => state.lastText,
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

interface GrowingBlock {
  readonly fields: Record<string, unknown>;
  /** Input JSON as it came; undefined: none came. */
  json?: string;
}

interface State {
  message?: JsonObject;
  readonly blocks: Map<number, GrowingBlock>;
  readonly open: Set<number>;
  /** Latest value of each count. */
  usage: Record<string, number>;
  stop: JsonObject;
  outputChars: number;
  lastText: string;
}

/** Events of other types, `ping` among them, say nothing about the message. */
const HANDLERS: Readonly<Record<string, (state: State, event: StreamEvent) => void>> = {
  message_start: (state, { message }) => {
    if (state.message || !isObject(message)) throw new StreamProblem('message_start came twice or without a message');
    state.message = message;
    noteUsage(state, message['usage']);
  },
  content_block_start: (state, { index, content_block: block }) => {
    if (!state.message) throw new StreamProblem('content came before message_start');
    if (typeof index !== 'number' || !isObject(block) || state.blocks.has(index)) {
      throw new StreamProblem(`content_block_start of block ${String(index)} came twice or without its block`);
    }
    state.blocks.set(index, { fields: { ...block } });
    state.open.add(index);
  },
  content_block_delta: (state, { index, delta }) => {
    const block = typeof index === 'number' && state.open.has(index) ? state.blocks.get(index) : undefined;
    if (!block || !isObject(delta))
      throw new StreamProblem(`a delta came for block ${String(index)}, which is not open`);
    addDelta(state, block, delta);
  },
  content_block_stop: (state, { index }) => {
    if (typeof index !== 'number' || !state.open.delete(index)) {
      throw new StreamProblem(`content_block_stop came for block ${String(index)}, which is not open`);
    }
  },
  message_delta: (state, { delta, usage }) => {
    noteUsage(state, usage);
    if (isObject(delta)) state.stop = { ...state.stop, ...delta };
  },
};

function addDelta(state: State, block: GrowingBlock, delta: JsonObject): void {
  if (delta['type'] === 'citations_delta') {
    const before = block.fields['citations'];
    block.fields['citations'] = [...(Array.isArray(before) ? before : []), delta['citation']];
    return;
  }
  const field = DELTA_FIELDS[String(delta['type'])];
  const more = field === undefined ? undefined : delta[field];
  if (field === undefined || typeof more !== 'string') return;
  state.outputChars += more.length;
  if (field === 'partial_json') block.json = (block.json ?? '') + more;
  else block.fields[field] = textOf(block.fields[field]) + more;
  if (field === 'text') state.lastText = (state.lastText + more).slice(-LAST_TEXT_CHARS);
}

/** Which field a delta makes longer. */
const DELTA_FIELDS: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
  input_json_delta: 'partial_json',
};

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Counts only ever grow; a null says that the server has nothing new on it. */
function noteUsage(state: State, usage: unknown): void {
  if (!isObject(usage)) return;
  for (const [name, count] of Object.entries(usage)) if (typeof count === 'number') state.usage[name] = count;
}

function toSeen(usage: Readonly<Record<string, number>>): SeenTokens {
  const { outputTokens, ...input } = toCounts(usage);
  return { ...input, outputTokensMin: outputTokens };
}

function toCounts(usage: Readonly<Record<string, number>>): TokenCounts {
  return {
    inputTokens: usage['input_tokens'] ?? 0,
    outputTokens: usage['output_tokens'] ?? 0,
    cacheReadTokens: usage['cache_read_input_tokens'] ?? 0,
    cacheWriteTokens: usage['cache_creation_input_tokens'] ?? 0,
  };
}

function toMessage({ message, blocks, open, stop, usage }: State): ReceivedMessage {
  if (!message) throw new StreamProblem('message_stop came without message_start');
  if (open.size > 0) throw new StreamProblem(`message_stop came while block ${[...open].join(', ')} was open`);
  const inOrder = [...blocks].sort(([a], [b]) => a - b).map(([, block]) => block);
  const details = stop['stop_details'];
  return {
    id: textOf(message['id']),
    model: textOf(message['model']),
    content: inOrder.map(toBlock),
    stop: textOf(stop['stop_reason']) || textOf(message['stop_reason']) || 'missing',
    ...(isObject(details) && { stopDetails: details }),
    usage: toCounts(usage),
  };
}

function toBlock({ fields, json }: GrowingBlock): ContentBlock {
  const type = textOf(fields['type']) || 'unknown';
  return json === undefined ? { ...fields, type } : { ...fields, type, input: toInput(json) };
}

/** Nothing but a whole JSON object is an input. */
function toInput(json: string): JsonObject {
  if (json.trim() === '') return {};
  try {
    const input: unknown = JSON.parse(json);
    return isObject(input) ? input : toRawInput(json);
  } catch {
    return toRawInput(json);
  }
}

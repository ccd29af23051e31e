import type { Usage } from '../protocol.ts';
import type { ContentBlock, EventRecord, TranscriptRecord, UserMessageRecord } from '../store/records.ts';
import { byteLength } from '../store/text.ts';

/** Bytes of JSON a token: on the low side, so that a guess is rather too big. */
const BYTES_PER_TOKEN = 3.5;

/** What a stub takes in place of a result. */
const STUB_BYTES = 250;

/** Smaller results stay: a stub would save next to nothing and cost the cache. Todo lists are below it. */
const SMALLEST_STUBBED_BYTES = 1024;

/** Results of this many last turns stay whole as long as the request fits: the model is still working with them. */
const FRESH_TURNS = 2;

/** Turns of about one age; within them the largest result goes first. */
const TURNS_PER_AGE = 8;

/** Name of the event record that keeps a decision: `data.toolUseIds`. */
export const STUBBED_EVENT = 'stubbed';

export interface ContextOptions {
  /** Where the usage records are, when the chain has none: every record of the transcript. Default: the chain. */
  readonly usages?: readonly TranscriptRecord[];
  /** Size of system prompt and tools; only counts until the server has counted for the first time. */
  readonly fixedBytes?: number;
}

/** Rough size in tokens of text or JSON. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Tokens the next request has: what the server counted last, and an estimate of what came since. */
export function contextSize(records: readonly TranscriptRecord[], options: ContextOptions = {}): number {
  const { usages = records, fixedBytes = 0 } = options;
  const counted = lastCount(records, usages);
  const since = records.slice(counted.index + 1);
  const added = since.reduce((bytes, record) => bytes + messageBytes(record), counted.index < 0 ? fixedBytes : 0);
  return Math.max(0, counted.tokens + estimateTokens(added - stubbedBytes(records, since)));
}

/** Ids of the results that were made stubs. A decision stands, so that the prompt's prefix keeps its bytes. */
export function stubbedIds(records: readonly TranscriptRecord[]): ReadonlySet<string> {
  return new Set(records.filter(isStubbedEvent).flatMap(idsOf));
}

export interface StubPlan extends ContextOptions {
  /** The chain of the conversation, with its events. */
  readonly records: readonly TranscriptRecord[];
  /** Tokens of input the model takes. */
  readonly window: number;
  /** Of the window, from where on results are stubbed. Default 0.8. */
  readonly share?: number;
  /** Of the window, down to where. Default 0.6: not every turn may cost the cache its prefix. */
  readonly target?: number;
  /** Of the window, what a request may have without being refused: above it fresh results go as well. Default 1. */
  readonly most?: number;
}

/**
 * `tool_use` ids whose results are to become stubs; none while there is room. Old ones first, of one age the largest
 * first; those of the last turns only where the request would be refused with them. To be recorded as an event before
 * the next request.
 */
export function planStubs({ records, window, share = 0.8, target = 0.6, most = 1, ...options }: StubPlan): string[] {
  const size = contextSize(records, options);
  if (size <= window * share) return [];
  const { old, fresh } = candidates(records);
  const excess = size - window * target;
  const chosen = largestOf(old, excess);
  const left = size - savedBy(chosen);
  const last = left > window * most ? largestOf(fresh, left - window * target) : [];
  return [...chosen, ...last].map(({ id }) => id);
}

/** As many as it takes, in their order. */
function largestOf(results: readonly Result[], excess: number): Result[] {
  const chosen: Result[] = [];
  for (const result of results) {
    if (savedBy(chosen) >= excess) break;
    chosen.push(result);
  }
  return chosen;
}

function savedBy(results: readonly Result[]): number {
  return results.reduce((sum, { bytes }) => sum + estimateTokens(bytes - STUB_BYTES), 0);
}

interface Result {
  readonly id: string;
  readonly bytes: number;
  /** 0 for the oldest turns. */
  readonly age: number;
}

function candidates(records: readonly TranscriptRecord[]): { readonly old: Result[]; readonly fresh: Result[] } {
  const done = stubbedIds(records);
  const messages = records.filter(isUserMessage).filter((record) => toolResults(record).length > 0);
  const sized = (some: readonly UserMessageRecord[], turnsPerAge: number): Result[] =>
    some
      .flatMap((record, index) => toolResults(record).map((block) => toSized(block, Math.floor(index / turnsPerAge))))
      .filter(({ id, bytes }) => bytes >= SMALLEST_STUBBED_BYTES && !done.has(id))
      .sort((a, b) => a.age - b.age || b.bytes - a.bytes);
  return { old: sized(messages.slice(0, -FRESH_TURNS), TURNS_PER_AGE), fresh: sized(messages.slice(-FRESH_TURNS), 1) };
}

function toSized(block: ContentBlock, age: number): Result {
  return { id: String(block['tool_use_id']), bytes: jsonBytes(block['content']), age };
}

/** The newest reply of the chain whose request the server has counted; -1 and nothing when there is none. */
function lastCount(
  records: readonly TranscriptRecord[],
  usages: readonly TranscriptRecord[],
): { tokens: number; index: number } {
  const counts = new Map<string, number>();
  for (const record of usages) {
    if (record.type === 'usage' && record.outcome === 'complete')
      counts.set(positionOf(record), tokensOf(record.usage));
  }
  const index = records.findLastIndex((record) => isReply(record) && counts.has(positionOf(record)));
  const reply = records[index];
  return { tokens: reply ? (counts.get(positionOf(reply)) ?? 0) : 0, index };
}

function isReply(record: TranscriptRecord): boolean {
  return record.type === 'message' && record.role === 'assistant';
}

/** Agent, epoch, branch and turn: the id without its slot. */
function positionOf({ id }: TranscriptRecord): string {
  return id.slice(0, id.lastIndexOf(':'));
}

function tokensOf({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: Usage): number {
  return inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens;
}

function messageBytes(record: TranscriptRecord): number {
  return record.type === 'message' ? jsonBytes(record.content) : 0;
}

/** What stubs decided after the last count take away from it. */
function stubbedBytes(records: readonly TranscriptRecord[], since: readonly TranscriptRecord[]): number {
  const ids = stubbedIds(since);
  if (ids.size === 0) return 0;
  const sizes = records
    .filter(isUserMessage)
    .flatMap(toolResults)
    .map((block) => toSized(block, 0));
  return sizes.reduce((sum, { id, bytes }) => (ids.has(id) ? sum + Math.max(0, bytes - STUB_BYTES) : sum), 0);
}

function isUserMessage(record: TranscriptRecord): record is UserMessageRecord {
  return record.type === 'message' && record.role === 'user';
}

function toolResults(record: UserMessageRecord): ContentBlock[] {
  return record.content.filter((block) => block.type === 'tool_result');
}

function isStubbedEvent(record: TranscriptRecord): record is EventRecord {
  return record.type === 'event' && record.name === STUBBED_EVENT;
}

function idsOf({ data }: EventRecord): string[] {
  const ids = data['toolUseIds'];
  return Array.isArray(ids) ? ids.filter((id): id is string => typeof id === 'string') : [];
}

function jsonBytes(value: unknown): number {
  return byteLength(JSON.stringify(value ?? ''));
}

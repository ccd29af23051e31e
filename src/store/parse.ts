import { isUtf8 } from 'node:buffer';
import type { TranscriptRecord } from './records.ts';

type Fields = Readonly<Record<string, unknown>>;

const isNumber = (value: unknown): boolean => typeof value === 'number';
const isString = (value: unknown): boolean => typeof value === 'string';
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What the code that reads a record of a known type relies on. Newer versions only add fields. */
const KNOWN_TYPES: Readonly<Record<string, (fields: Fields) => boolean>> = {
  session_meta: (f) => isString(f['runId']) && isString(f['agentId']) && isObject(f['objects']) && isObject(f['trace']),
  message: (f) =>
    isNumber(f['turn']) &&
    Array.isArray(f['content']) &&
    (f['role'] === 'user' || (f['role'] === 'assistant' && Array.isArray(f['calls']))),
  attempt: (f) => isNumber(f['turn']) && isNumber(f['attempt']) && isNumber(f['maxTokens']),
  usage: (f) => isNumber(f['turn']) && isNumber(f['attempt']) && isUsage(f['usage']),
  event: (f) => isString(f['name']) && isObject(f['data']),
  span: (f) => isString(f['name']) && isObject(f['trace']) && isObject(f['attributes']),
  end: (f) =>
    isString(f['status']) && isObject(f['usage']) && isUsage(f['usage']['own']) && isUsage(f['usage']['subtree']),
};

/**
 * The record on a line; undefined when the line is none (torn, garbage, foreign). A type this version does not know is
 * passed through as it is: whoever looks at `type` ignores it.
 */
export function parseRecord(line: Buffer): TranscriptRecord | undefined {
  const value = parseJson(line);
  if (!isObject(value) || !hasBase(value)) return undefined;
  const isValid = isKnownType(value['type']) ? KNOWN_TYPES[value['type']] : undefined;
  return isValid === undefined || isValid(value) ? asRecord(value) : undefined;
}

/** Whether this version knows what records of the type mean. */
export function isKnownType(type: unknown): type is TranscriptRecord['type'] {
  return typeof type === 'string' && Object.hasOwn(KNOWN_TYPES, type);
}

/** True for the token counts that every sum needs. */
export function isUsage(value: unknown): boolean {
  if (!isObject(value)) return false;
  const counts = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'requests'];
  return counts.every((name) => isNumber(value[name])) && (value['costUsd'] === null || isNumber(value['costUsd']));
}

/** JSON of the bytes; undefined when they are not JSON. Bytes that are not UTF-8 would come out changed, so they are not. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined; // The answer to "is it JSON?"; whoever asks counts it or gives the reason.
  }
}

function hasBase(fields: Fields): boolean {
  const { v, id, parent, at, type } = fields;
  return (
    isNumber(v) && isString(id) && id !== '' && isString(type) && isString(at) && (parent === null || isString(parent))
  );
}

/** The one place that trusts a checked line; an unknown type is let through on purpose. */
function asRecord(fields: Fields): TranscriptRecord {
  return fields as unknown as TranscriptRecord;
}

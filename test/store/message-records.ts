import type {
  AssistantMessageRecord,
  ContentBlock,
  RecordedCall,
  SealedResult,
  UserMessageRecord,
} from '../../src/store/records.ts';

const BASE = { v: 1, parent: null, at: '2026-11-30T00:00:00.000Z', type: 'message' } as const;

/** A user message as the seal records it. */
export function userRecord(
  turn: number,
  content: readonly ContentBlock[],
  results: readonly SealedResult[] = [],
): UserMessageRecord {
  return { ...BASE, id: `a:0::${turn}:user`, role: 'user', turn, content, results };
}

/** A reply as callModel records it; every tool_use gets its call. */
export function replyRecord(
  turn: number,
  content: readonly ContentBlock[],
  more: Partial<AssistantMessageRecord> = {},
): AssistantMessageRecord {
  const uses = content.filter((block) => block.type === 'tool_use');
  return {
    ...BASE,
    id: `a:0::${turn}:reply`,
    role: 'assistant',
    turn,
    content,
    stop: uses.length > 0 ? 'tool_use' : 'end_turn',
    messageId: `msg_${turn}`,
    model: 'm-1',
    calls: uses.map((block, index) => toCall(turn, index, block)),
    ...more,
  };
}

export function text(words: string): ContentBlock {
  return { type: 'text', text: words };
}

export function use(id: string, name = 'read', input: unknown = {}): ContentBlock {
  return { type: 'tool_use', id, name, input };
}

export function result(id: string, content: unknown = 'ok', isError = false): ContentBlock {
  return { type: 'tool_result', tool_use_id: id, content, is_error: isError };
}

function toCall(turn: number, index: number, block: ContentBlock): RecordedCall {
  const name = String(block['name']);
  const kind = name === 'bash' ? 'effect' : 'read';
  return { callId: `t${turn}.${index}`, name, kind, summary: `${name} a.ts`, toolUseId: String(block['id']) };
}

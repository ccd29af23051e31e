import type { ContentBlock, TranscriptRecord } from './records.ts';

/** What the API takes as an id; the length is ours, to keep odd ones short. */
const VALID_ID = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * The content with every `tool_use` id valid and new to the conversation. A model's id is untrusted text; one that was
 * used before would give two calls one result. Pure: the same content and ids give the same answer.
 */
export function uniqueToolUseIds(content: readonly ContentBlock[], used: ReadonlySet<string>): readonly ContentBlock[] {
  // Not a copy of `used`: that would make a conversation cost the square of its turns.
  const taken = new TakenIds(used);
  const blocks = content.map((block) => {
    if (block.type !== 'tool_use') return block;
    const id = freeId(block['id'], taken);
    taken.add(id);
    return id === block['id'] ? block : { ...block, id };
  });
  return blocks.every((block, index) => block === content[index]) ? content : blocks;
}

/** Every `tool_use` id of a transcript. */
export function usedToolUseIds(records: readonly TranscriptRecord[]): Set<string> {
  const ids = new Set<string>();
  for (const record of records) {
    if (record.type !== 'message' || record.role !== 'assistant') continue;
    for (const block of record.content) if (block.type === 'tool_use') ids.add(String(block['id']));
  }
  return ids;
}

/** Ids used before, and those given out since. */
class TakenIds {
  readonly #before: ReadonlySet<string>;
  readonly #since = new Set<string>();

  constructor(before: ReadonlySet<string>) {
    this.#before = before;
  }

  get size(): number {
    return this.#before.size + this.#since.size;
  }

  has(id: string): boolean {
    return this.#since.has(id) || this.#before.has(id);
  }

  add(id: string): void {
    this.#since.add(id);
  }
}

function freeId(wanted: unknown, taken: TakenIds): string {
  if (typeof wanted === 'string' && VALID_ID.test(wanted) && !taken.has(wanted)) return wanted;
  const cleaned = typeof wanted === 'string' ? wanted.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 100) : '';
  const stem = cleaned || 'toolu';
  for (let count = taken.size + 1; ; count++) {
    const id = `${stem}_${count}`;
    if (!taken.has(id)) return id;
  }
}

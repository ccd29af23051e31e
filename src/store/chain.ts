import type { TranscriptRecord } from './records.ts';

/*
 * The conversation of a transcript. Session, message, event and end records form the chain; attempts, usage and spans
 * hang off it as leaves, so that a late one (spent is spent) moves nothing.
 *
 * A branch is one (epoch, branch) pair of the record ids. Within a branch the order is that of the file: two writers
 * may have read the same tip, and going by `parent` alone would then lose one of their records. `parent` says where a
 * branch starts.
 */

const CHAIN_TYPES: ReadonlySet<string> = new Set<TranscriptRecord['type']>(['session_meta', 'message', 'event', 'end']);

/** Follows the head while records arrive: the last chain record of the branch that was begun last. */
export class HeadTracker {
  readonly #branches = new Set<string>();
  #newest = '';
  #head: TranscriptRecord | undefined;

  get head(): TranscriptRecord | undefined {
    return this.#head;
  }

  add(record: TranscriptRecord): void {
    if (!isOnChain(record)) return;
    const branch = branchOf(record.id);
    if (!this.#branches.has(branch)) {
      this.#branches.add(branch);
      this.#newest = branch;
    }
    if (branch === this.#newest) this.#head = record;
  }
}

/** Last record of the conversation; undefined for an empty transcript. */
export function headOf(records: readonly TranscriptRecord[]): TranscriptRecord | undefined {
  const tracker = new HeadTracker();
  for (const record of records) tracker.add(record);
  return tracker.head;
}

/** What was made of a list of records when it was last looked at. */
interface Known {
  readonly length: number;
  readonly last: TranscriptRecord | undefined;
  readonly chain: readonly TranscriptRecord[];
}

const known = new WeakMap<readonly TranscriptRecord[], Known>();

/**
 * Chain records of the current branch and of what it follows, oldest first. `records` are in file order. Each step of a
 * turn asks for it, so of a list that has only grown the new records alone are looked at.
 */
export function conversation(records: readonly TranscriptRecord[]): readonly TranscriptRecord[] {
  const before = known.get(records);
  const chain = (before && extended(before, records)) ?? wholeConversation(records);
  known.set(records, { length: records.length, last: records.at(-1), chain });
  return chain;
}

/** Undefined when that cannot be told from the new records: the list was filled anew, or a branch has begun. */
function extended(before: Known, records: readonly TranscriptRecord[]): readonly TranscriptRecord[] | undefined {
  if (records[before.length - 1] !== before.last) return undefined;
  const added = records.slice(before.length).filter(isOnChain);
  if (added.length === 0) return before.chain;
  const head = before.chain.at(-1);
  const isSameBranch = head !== undefined && added.every(({ id }) => branchOf(id) === branchOf(head.id));
  return isSameBranch ? [...before.chain, ...added] : undefined;
}

function wholeConversation(records: readonly TranscriptRecord[]): TranscriptRecord[] {
  const chain = records.filter(isOnChain);
  const parts: TranscriptRecord[][] = [];
  let head = headOf(chain);
  let end = chain.length;
  while (head !== undefined) {
    const part = branchUpTo(chain, head, end);
    parts.unshift(part);
    const first = part[0] ?? head;
    end = chain.indexOf(first);
    head = startOf(records, chain.slice(0, end), first);
  }
  return parts.flat();
}

/** Epoch in a record's id; 0 for an id of another form. */
export function epochOf(id: string): number {
  const epoch = Number(id.split(':')[1]);
  return Number.isInteger(epoch) ? epoch : 0;
}

function branchUpTo(chain: readonly TranscriptRecord[], head: TranscriptRecord, end: number): TranscriptRecord[] {
  const branch = branchOf(head.id);
  const last = chain.lastIndexOf(head, end - 1);
  return chain.slice(0, last + 1).filter((record) => branchOf(record.id) === branch);
}

/**
 * The chain record that a branch's first record follows. When its line was lost, the one before it in the file: better a
 * conversation with a hole than none. Only looks backwards, so a damaged file cannot send it in circles.
 */
function startOf(
  records: readonly TranscriptRecord[],
  earlier: readonly TranscriptRecord[],
  first: TranscriptRecord,
): TranscriptRecord | undefined {
  if (first.parent === null) return undefined;
  const parent = earlier.find((record) => record.id === first.parent);
  if (parent !== undefined) return parent;
  const leaf = records.find((record) => record.id === first.parent && !isOnChain(record));
  const behindLeaf = leaf && earlier.find((record) => record.id === leaf.parent);
  return behindLeaf ?? earlier.at(-1);
}

function isOnChain(record: TranscriptRecord): boolean {
  return CHAIN_TYPES.has(record.type);
}

function branchOf(id: string): string {
  const [, epoch = '', branch = ''] = id.split(':');
  return `${epoch}:${branch}`;
}

import { OWNER_EVENT, positionOf } from './records.ts';
import type { RecordPosition, TranscriptRecord } from './records.ts';

/*
 * The conversation of a transcript. Session, message, event and end records form the chain; attempts, usage and spans
 * hang off it as leaves, so that a late one (spent is spent) moves nothing.
 *
 * A branch is one (epoch, branch) pair of the record ids. Within a branch the order is that of the file: two writers
 * may have read the same tip, and going by `parent` alone would then lose one of their records. `parent` says where a
 * branch starts: a deliberate reset begins its own with a `fork` event that follows the record it was reset to.
 */

/** Which branch of a transcript is meant. */
export type BranchPosition = Pick<RecordPosition, 'epoch' | 'branch'>;

const CHAIN_TYPES: ReadonlySet<string> = new Set<TranscriptRecord['type']>(['session_meta', 'message', 'event', 'end']);

/**
 * Follows the head while records arrive: the last chain record of the branch that was begun last, or that a workflow
 * run was made the owner of later (a server that was set back to before a reset goes on in the older branch).
 */
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
    if (!this.#branches.has(branch) || isOwnerEvent(record)) this.#newest = branch;
    this.#branches.add(branch);
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

const known = new WeakMap<readonly TranscriptRecord[], Map<string, Known>>();

/**
 * Chain records of a branch and of what it follows, oldest first. `records` are in file order. Default: the branch of
 * the head, which also stands in for one that has no record yet. Each step of a turn asks for it, so of a list that has
 * only grown the new records alone are looked at.
 */
export function conversation(records: readonly TranscriptRecord[], of?: BranchPosition): readonly TranscriptRecord[] {
  const branches = known.get(records) ?? new Map<string, Known>();
  const key = of ? branchName(of) : '';
  const before = branches.get(key);
  const chain = (before && extended(before, records, key)) ?? wholeConversation(records, of);
  branches.set(key, { length: records.length, last: records.at(-1), chain });
  known.set(records, branches);
  return chain;
}

/** Undefined when that cannot be told from the new records: the list was filled anew, or the head may have moved. */
function extended(
  before: Known,
  records: readonly TranscriptRecord[],
  wanted: string,
): readonly TranscriptRecord[] | undefined {
  if (records[before.length - 1] !== before.last) return undefined;
  const added = records.slice(before.length).filter(isOnChain);
  if (added.length === 0) return before.chain;
  const head = before.chain.at(-1);
  if (head === undefined) return undefined;
  const branch = branchOf(head.id);
  const own = added.filter(({ id }) => branchOf(id) === branch);
  // What is added to another branch moves the head, but not the end of a branch that was asked for by name.
  if (own.length < added.length && wanted !== branch) return undefined;
  return own.length === 0 ? before.chain : [...before.chain, ...own];
}

function wholeConversation(records: readonly TranscriptRecord[], of?: BranchPosition): TranscriptRecord[] {
  const chain = records.filter(isOnChain);
  const parts: TranscriptRecord[][] = [];
  let head = (of && lastOf(chain, of)) ?? headOf(chain);
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
  return positionOf(id).epoch;
}

/** Whether two records are of the same epoch and branch. */
export function isSameBranch(a: TranscriptRecord, b: TranscriptRecord): boolean {
  return branchOf(a.id) === branchOf(b.id);
}

function lastOf(chain: readonly TranscriptRecord[], of: BranchPosition): TranscriptRecord | undefined {
  return chain.findLast((record) => branchOf(record.id) === branchName(of));
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

function isOwnerEvent(record: TranscriptRecord): boolean {
  return record.type === 'event' && record.name === OWNER_EVENT;
}

function branchOf(id: string): string {
  return branchName(positionOf(id));
}

function branchName({ epoch, branch }: BranchPosition): string {
  return `${epoch}:${branch}`;
}

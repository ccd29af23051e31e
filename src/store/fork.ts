import { conversation } from './chain.ts';
import type { BranchPosition } from './chain.ts';
import { positionOf, recordId } from './records.ts';
import type { AssistantMessageRecord, EventRecord, RecordPosition, TranscriptRecord } from './records.ts';

/*
 * A deliberate reset begins a branch with one event that follows the last record it keeps. Turns up to that one are
 * looked up in the branch it came from, later ones only in its own.
 */

/** Name of the event that begins a branch. */
export const FORK_EVENT = 'fork';

/** What a branch begins with. */
export interface Fork {
  /** Last turn that is kept; 0: nothing but the header. */
  readonly keptTurn: number;
  /** What the model is told of calls that had taken effect and are no longer in its conversation. */
  readonly note?: string;
  /** Id of the record that the branch follows. */
  readonly parent: string | null;
}

type Records = { get(id: string): TranscriptRecord | undefined };

export function forkId(position: Omit<RecordPosition, 'turn'>): string {
  return recordId({ ...position, turn: 0 }, FORK_EVENT);
}

/** How a branch began; undefined for the first branch of an epoch and for one that is not begun yet. */
export function forkOf(records: Records, position: Omit<RecordPosition, 'turn'>): Fork | undefined {
  if (position.branch === '') return undefined;
  const record = records.get(forkId(position));
  return record?.type === 'event' ? toFork(record) : undefined;
}

/** A turn's record as a branch sees it. */
export function recordOfTurn(records: Records, position: RecordPosition, slot: string): TranscriptRecord | undefined {
  const own = records.get(recordId(position, slot));
  if (own) return own;
  const fork = forkOf(records, position);
  if (!fork || fork.parent === null) return undefined;
  // The prompt stays whatever else is left behind; it is the one message that no turn has written.
  const lastTurn = slot === 'user' ? Math.max(1, fork.keptTurn) : fork.keptTurn;
  if (position.turn > lastTurn) return undefined;
  const { epoch, branch } = positionOf(fork.parent);
  return recordOfTurn(records, { ...position, epoch, branch }, slot);
}

/** What a branch keeps, and the replies after it that it leaves behind, of whichever branch. */
export interface Split {
  readonly kept: readonly TranscriptRecord[];
  readonly lostReplies: readonly AssistantMessageRecord[];
}

/** Splits a transcript for a reset of the branch `base` to the end of a turn. */
export function splitAt(records: readonly TranscriptRecord[], base: BranchPosition, keptTurn: number): Split {
  const chain = conversation(records, base);
  const next = chain.findIndex((record) => record.type === 'message' && record.turn > keptTurn && !isPrompt(record));
  const kept = (next < 0 ? chain : chain.slice(0, next)).filter((record) => record.type !== 'end');
  const last = kept.at(-1);
  const rest = last ? records.slice(records.indexOf(last) + 1) : records;
  const isKept = new Set(kept);
  return {
    kept,
    lostReplies: rest.filter((record) => isReply(record) && !isKept.has(record)) as AssistantMessageRecord[],
  };
}

/** Branch that a workflow run wrote in; undefined for a run that never wrote. */
export function branchOfRun(records: readonly TranscriptRecord[], workflowRunId: string): BranchPosition | undefined {
  const record = records.findLast(
    (candidate) =>
      (candidate.type === 'session_meta' && candidate.workflowRunId === workflowRunId) ||
      (candidate.type === 'event' && candidate.data['workflowRunId'] === workflowRunId),
  );
  return record && positionOf(record.id);
}

function toFork({ data, parent }: EventRecord): Fork {
  const { keptTurn, note } = data;
  return { keptTurn: typeof keptTurn === 'number' ? keptTurn : 0, parent, ...(typeof note === 'string' && { note }) };
}

function isPrompt(record: TranscriptRecord): boolean {
  return record.type === 'message' && record.turn === 1 && record.id.endsWith(':user');
}

function isReply(record: TranscriptRecord): record is AssistantMessageRecord {
  return record.type === 'message' && record.role === 'assistant';
}

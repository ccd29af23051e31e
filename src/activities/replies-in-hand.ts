import { createHash } from 'node:crypto';
import type { ModelRequest } from '../model/model.ts';
import { recordId } from '../store/records.ts';
import type { AttemptRecord } from '../store/records.ts';
import type { AgentFiles } from './agent-files.ts';
import type { PaidReply } from './attempt.ts';

/** A whole reply that was paid for and is not in the transcript yet. */
export interface ReplyInHand {
  readonly attempt: AttemptRecord;
  readonly toolChoice: ModelRequest['toolChoice'];
  readonly paid: PaidReply;
}

/**
 * Replies that came to an attempt which then could not record them: another one had taken over while the machine slept,
 * or the disk was full. The next attempt in this process that puts the very same question takes the reply as its own;
 * the one that got it has settled what it cost and writes nothing more.
 */
const inHand = new Map<string, ReplyInHand>();

/** Each may be large; nobody comes for most of those that stay. */
const MAX_IN_HAND = 20;

export function holdReply(files: AgentFiles, turn: number, held: ReplyInHand): void {
  forgetReply(files, turn);
  const [oldest] = inHand.keys();
  if (inHand.size >= MAX_IN_HAND && oldest !== undefined) inHand.delete(oldest);
  inHand.set(questionOf(files, turn), held);
}

/** The reply to this very request, which system prompt and tools make no other: they never change for an agent. */
export function replyInHand(files: AgentFiles, turn: number, request: ModelRequest): PaidReply | undefined {
  const held = inHand.get(questionOf(files, turn));
  if (held === undefined) return undefined;
  const { model, maxTokens, requestSha256 } = held.attempt;
  const isSame =
    model === request.model &&
    maxTokens === request.maxTokens &&
    held.toolChoice === request.toolChoice &&
    requestSha256 === messagesSha256(JSON.stringify(request.messages));
  return isSame ? held.paid : undefined;
}

/** The turn has its reply: whatever else came for it is not needed any more. */
export function forgetReply(files: AgentFiles, turn: number): void {
  inHand.delete(questionOf(files, turn));
}

/** What an attempt record says of its messages, given as JSON. */
export function messagesSha256(json: string): string {
  return createHash('sha256').update(json).digest('hex');
}

/** Names a question within this process: one agent's transcript, and the reply that it waits for there. */
export function questionOf({ ref, transcript }: AgentFiles, turn: number): string {
  return `${transcript.file} ${recordId({ ...ref, turn }, 'reply')}`;
}

import type { AgentStatus } from '../protocol.ts';
import type { AssistantMessageRecord, ContentBlock, TranscriptRecord } from '../store/records.ts';
import { NO_TEXT } from '../store/blocks.ts';
import { conversation } from '../store/chain.ts';
import { byteLength, headOf, tailOf, toSafeText } from '../store/text.ts';

/** Most of a child's text that its parent gets, in UTF-8 bytes, everything said about it included. */
export const MAX_CHILD_RESULT_BYTES = 32 * 1024;

const MAX_DESCRIPTION_BYTES = 200;
const MAX_ERROR_BYTES = 300;

export interface FinalText {
  /** Empty when the agent never said anything. */
  readonly text: string;
  /** Turn of the message it is from; 0 without text. */
  readonly fromTurn: number;
}

/** The last text of an agent, from an earlier message when the last has none; a continued answer is one text. */
export function finalText(records: readonly TranscriptRecord[]): FinalText {
  const replies = conversation(records).filter(isReply);
  const last = replies.findLastIndex((reply) => textOf(reply) !== '');
  const reply = replies[last];
  if (!reply) return { text: '', fromTurn: 0 };
  let text = textOf(reply);
  for (let index = last - 1; index >= 0; index--) {
    const earlier = replies[index];
    if (!earlier || !isContinued(earlier)) break;
    text = textOf(earlier) + (earlier.stop === 'pause_turn' ? '\n\n' : '') + text;
  }
  return { text, fromTurn: reply.turn };
}

export interface ChildResult {
  readonly description: string;
  readonly text: string;
  readonly status: AgentStatus;
  /** Where the whole text is. */
  readonly transcriptPath: string | undefined;
  /** Why the child ended, when there is more to say than its status. */
  readonly error?: string;
  /** Turns it was allowed. */
  readonly maxTurns?: number;
}

/** What a parent is told of a child's ending: always something, never more than MAX_CHILD_RESULT_BYTES. */
export function childResultText({ description, text, status, transcriptPath, error, maxTurns }: ChildResult): string {
  const label = `[Agent: ${headOf(oneLine(description), MAX_DESCRIPTION_BYTES)}]`;
  const ending = endingOf(status, maxTurns, error);
  const said = toSafeText(text).trim();
  const notes = ending === undefined ? '' : `\n[${ending}]`;
  const where = transcriptPath === undefined ? 'no transcript' : `its transcript is ${transcriptPath}`;
  if (said === '') return `${label}${notes}\n(it left no text; ${where})`;
  const whole = `${label}${notes}\n${said}`;
  if (byteLength(whole) <= MAX_CHILD_RESULT_BYTES) return whole;
  return cutToFit({ label, notes, said, transcriptPath });
}

interface Parts {
  readonly label: string;
  readonly notes: string;
  readonly said: string;
  readonly transcriptPath: string | undefined;
}

/** The end of a report holds its conclusion, so the beginning goes. */
function cutToFit({ label, notes, said, transcriptPath }: Parts): string {
  const size = byteLength(said);
  const head = (kept: number): string =>
    `${label} [only the last ${kept} of ${size} bytes; the whole text is the last message in ${transcriptPath}]${notes}\n`;
  const room = Math.max(0, MAX_CHILD_RESULT_BYTES - byteLength(head(size)));
  const tail = tailOf(said, room);
  return head(byteLength(tail)) + tail;
}

/** For the parent's model, in words; a completed child needs none. */
function endingOf(status: AgentStatus, maxTurns: number | undefined, error: string | undefined): string | undefined {
  const why = error === undefined ? '' : `: ${headOf(oneLine(error), MAX_ERROR_BYTES)}`;
  if (status === 'completed') return error === undefined ? undefined : `completed${why}`;
  if (status !== 'max_turns') return `${ENDINGS[status]}${why}`;
  const limit = maxTurns === undefined ? 'turns' : `${maxTurns} turns`;
  return `stopped at its limit of ${limit}; what it had by then`;
}

/** How the result of a cancelled child begins, after its label. */
export const CANCELLED_CHILD = 'cancelled before it was done';

const ENDINGS: Readonly<Record<Exclude<AgentStatus, 'completed' | 'max_turns'>, string>> = {
  budget: 'stopped: the budget of the run is used up',
  timeout: 'stopped at its time limit',
  failed: 'failed',
  cancelled: CANCELLED_CHILD,
  refused: 'ended: the model refused to go on',
  rejected: 'was not started',
  lost: 'lost: it ended without a last word, and what it did is not known',
};

function isReply(record: TranscriptRecord): record is AssistantMessageRecord {
  return record.type === 'message' && record.role === 'assistant';
}

/** The next reply went on where this one stopped. */
function isContinued({ stop, content }: AssistantMessageRecord): boolean {
  const isCut = stop === 'max_tokens' || stop === 'pause_turn';
  return isCut && content.every((block) => block.type !== 'tool_use');
}

/** Neighbouring text blocks are one text (citations split it); others stand apart. */
function textOf({ content }: AssistantMessageRecord): string {
  let text = '';
  for (const [index, block] of content.entries()) {
    const words = wordsOf(block);
    const isApart = words !== '' && text !== '' && content[index - 1]?.type !== 'text';
    text += isApart ? `\n\n${words}` : words;
  }
  return text.trim() === '' ? '' : text;
}

function wordsOf(block: ContentBlock): string {
  if (block.type !== 'text' || block['text'] === NO_TEXT['text']) return '';
  return typeof block['text'] === 'string' ? block['text'] : '';
}

function oneLine(text: string): string {
  return toSafeText(text).replace(/\s+/g, ' ').trim();
}

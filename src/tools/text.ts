import { headOf, tailOf, toWellFormed } from '../store/text.ts';

/** Most UTF-8 bytes of one result's text, its notes included. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** Most UTF-8 bytes of the line that shows a call to people. */
export const MAX_SUMMARY_BYTES = 100;

/** Everything below U+0020 but tab and newline, DEL and the C1 controls; a CR only where no LF follows. */
const INVISIBLE = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)/g;

/** Text that any JSON parser and the model's server take: no lone surrogates, no NUL, control characters visible. */
export function visibleText(text: string): string {
  return toWellFormed(text).replace(INVISIBLE, escapeCharacter);
}

/** Head and tail of a long text with a note in between that says how much is left out. */
export function cutMiddle(text: string, keep: { headBytes: number; tailBytes: number }): string {
  const total = Buffer.byteLength(text);
  if (total <= keep.headBytes + keep.tailBytes) return text;
  const head = headOf(text, keep.headBytes);
  const tail = tailOf(text, keep.tailBytes);
  const left = total - Buffer.byteLength(head) - Buffer.byteLength(tail);
  return `${head}\n[${left} bytes left out]\n${tail}`;
}

/** The last step of every result's text: visible characters only, at most `MAX_RESULT_BYTES`. */
export function resultText(text: string): string {
  const visible = visibleText(text);
  const total = Buffer.byteLength(visible);
  if (total <= MAX_RESULT_BYTES) return visible;
  const note = `\n[cut: the whole text has ${total} bytes]`;
  return headOf(visible, MAX_RESULT_BYTES - Buffer.byteLength(note)) + note;
}

/** One line of at most `MAX_SUMMARY_BYTES` bytes for people. */
export function summaryLine(words: string): string {
  const line = visibleText(words.replace(/\s+/g, ' ').trim());
  if (Buffer.byteLength(line) <= MAX_SUMMARY_BYTES) return line;
  return `${headOf(line, MAX_SUMMARY_BYTES - 3)}…`;
}

/** Like `summaryLine`, but of a long path the end is kept: that is where the file's name is. */
export function summaryOfPath(verb: string, path: string): string {
  const line = summaryLine(`${verb} ${path}`);
  if (!line.endsWith('…')) return line;
  const room = MAX_SUMMARY_BYTES - Buffer.byteLength(`${verb} …`);
  return `${verb} …${tailOf(visibleText(path.replace(/\s+/g, ' ')), room)}`;
}

/** `1 line`, `2 lines`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function escapeCharacter(character: string): string {
  if (character === '\r') return '\\r';
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
}

import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Bytes of a program as text that is safe to store and send: invalid UTF-8 replaced, colours dropped, progress lines
 * reduced to their last state, every other control character shown instead of sent.
 */
export function cleanOutput(bytes: Buffer): string {
  return escapeControls(plainLines(bytes));
}

/** The same for megabytes, in steps: at once it would keep this process, its heartbeats included, busy for seconds. */
export async function cleanLongOutput(bytes: Buffer): Promise<string> {
  const text = plainLines(bytes);
  const parts: string[] = [];
  for (let start = 0; start < text.length; start += STEP_CHARACTERS) {
    parts.push(escapeControls(text.slice(start, start + STEP_CHARACTERS)));
    await nextTurn();
  }
  return parts.join('');
}

const STEP_CHARACTERS = 64 * 1024;

/** Both ends of a text in at most `limit` characters, cut between code points; undefined when it fits whole. */
export function cutMiddle(text: string, limit: number): { head: string; tail: string; cut: number } | undefined {
  if (text.length <= limit) return undefined;
  const headEnd = onBoundary(text, Math.floor(limit / 2));
  const tailStart = onBoundary(text, text.length - Math.floor(limit / 2));
  return { head: text.slice(0, headEnd), tail: text.slice(tailStart), cut: tailStart - headEnd };
}

/** The last line that says anything, for people: at most 200 characters. */
export function lastLine(bytes: Buffer): string {
  const lines = cleanOutput(bytes).split('\n');
  const line = lines.findLast((candidate) => candidate.trim() !== '') ?? '';
  return line.slice(0, onBoundary(line, 200));
}

const COLOURS = /\x1b\[[0-9;:]*m|\x1b\[[0-2]?K/g;
// All of C0 but tab and newline, DEL and C1.

const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

function plainLines(bytes: Buffer): string {
  const text = bytes.toString('utf8').replace(COLOURS, '').replaceAll('\r\n', '\n');
  return text.includes('\r') ? text.split('\n').map(lastState).join('\n') : text;
}

function escapeControls(text: string): string {
  return text.replace(CONTROLS, escapeControl);
}

function escapeControl(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
}

function lastState(line: string): string {
  return line.split('\r').findLast((state) => state !== '') ?? '';
}

// Between the halves of a surrogate pair: one back.
function onBoundary(text: string, index: number): number {
  const code = text.charCodeAt(index);
  return index > 0 && code >= 0xdc00 && code <= 0xdfff ? index - 1 : Math.min(index, text.length);
}

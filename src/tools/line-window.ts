import { decodeLine } from './content.ts';

/** Longer lines are cut. */
export const MAX_LINE_CHARACTERS = 2000;

/** A UTF-8 character has at most four bytes. */
const MAX_LINE_BYTES = MAX_LINE_CHARACTERS * 4;

export interface Window {
  /** First line, from 1. */
  readonly offset: number;
  /** Most lines. */
  readonly limit: number;
  /** Most UTF-8 bytes of the text. */
  readonly maxBytes: number;
}

/** The lines that fit a window, numbered, and what was left out. */
export interface View {
  readonly text: string;
  readonly lines: number;
  /** Where to go on; undefined when the end was reached. */
  readonly nextOffset: number | undefined;
  readonly cutLines: number;
  readonly crlf: number;
  readonly lf: number;
  /** Whether the last line of the file was seen and has no line end. */
  readonly openEnd: boolean;
  /** Lines of the file; known only when the end was reached. */
  readonly totalLines: number | undefined;
}

/** Whether the model saw every character. */
export function isWhole(view: View, window: Window): boolean {
  return window.offset === 1 && view.nextOffset === undefined && view.cutLines === 0;
}

/** Reads only as far as the window needs; memory does not depend on the file or on the length of its lines. */
export async function viewLines(chunks: AsyncIterable<Buffer> | Iterable<Buffer>, window: Window): Promise<View> {
  const state = newState(window);
  for await (const chunk of chunks) {
    if (takeChunk(state, chunk)) break;
  }
  if (!state.full && state.lineBytes > 0) finishLine(state, false);
  return toView(state);
}

/** `     1<tab>content`: the tab makes the number easy to tell from the content. */
export function numberedLine(number: number, content: string): string {
  return `${String(number).padStart(6)}\t${content}`;
}

interface State {
  readonly window: Window;
  /** Number of the line being read. */
  number: number;
  kept: Buffer[];
  keptBytes: number;
  lineBytes: number;
  readonly shown: string[];
  shownBytes: number;
  full: boolean;
  cutLines: number;
  crlf: number;
  lf: number;
  openEnd: boolean;
}

function newState(window: Window): State {
  return {
    ...{ window, number: 1, kept: [], keptBytes: 0, lineBytes: 0, shown: [], shownBytes: 0 },
    ...{ full: false, cutLines: 0, crlf: 0, lf: 0, openEnd: false },
  };
}

/** True: the window is full and there is more. */
function takeChunk(state: State, chunk: Buffer): boolean {
  for (let at = 0; at < chunk.length;) {
    if (state.shown.length >= state.window.limit) state.full = true;
    if (state.full) return true;
    const end = chunk.indexOf(10, at);
    keep(state, chunk.subarray(at, end === -1 ? chunk.length : end));
    if (end === -1) return false;
    finishLine(state, true);
    at = end + 1;
  }
  return state.full;
}

function keep(state: State, bytes: Buffer): void {
  state.lineBytes += bytes.length;
  const room = MAX_LINE_BYTES + 1 - state.keptBytes;
  if (state.number < state.window.offset || room <= 0 || bytes.length === 0) return;
  // A copy: a slice would hold on to its whole chunk.
  const kept = Buffer.from(bytes.subarray(0, room));
  state.kept.push(kept);
  state.keptBytes += kept.length;
}

function finishLine(state: State, hasEnd: boolean): void {
  if (state.number >= state.window.offset) showLine(state, hasEnd);
  if (state.full) return;
  state.number++;
  state.openEnd = !hasEnd;
  state.kept = [];
  state.keptBytes = 0;
  state.lineBytes = 0;
}

function showLine(state: State, hasEnd: boolean): void {
  const bytes = Buffer.concat(state.kept);
  const hasCr = hasEnd && state.lineBytes === bytes.length && bytes.at(-1) === 13;
  const line = lineText(hasCr ? bytes.subarray(0, -1) : bytes, state.lineBytes);
  const shown = numberedLine(state.number, line.text);
  const size = Buffer.byteLength(shown) + 1;
  if (state.shown.length > 0 && state.shownBytes + size > state.window.maxBytes) {
    state.full = true;
    return;
  }
  state.shown.push(shown);
  state.shownBytes += size;
  if (line.isCut) state.cutLines++;
  if (hasCr) state.crlf++;
  else if (hasEnd) state.lf++;
}

function lineText(bytes: Buffer, lineBytes: number): { readonly text: string; readonly isCut: boolean } {
  const characters = [...decodeLine(wholeCharacters(bytes))];
  const isKeptWhole = bytes.length <= MAX_LINE_BYTES;
  if (isKeptWhole && characters.length <= MAX_LINE_CHARACTERS) return { text: characters.join(''), isCut: false };
  const head = characters.slice(0, MAX_LINE_CHARACTERS).join('');
  return { text: `${head}… [cut: the line has ${lineBytes} bytes]`, isCut: true };
}

/** Drops the start of a character that was cut in the middle when a long line was kept only in part. */
function wholeCharacters(bytes: Buffer): Buffer {
  if (bytes.length <= MAX_LINE_BYTES) return bytes;
  let end = bytes.length - 1;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

function toView(state: State): View {
  const { crlf, lf, cutLines, full } = state;
  return {
    ...{ crlf, lf, cutLines, openEnd: state.openEnd },
    text: state.shown.join('\n'),
    lines: state.shown.length,
    nextOffset: full ? state.window.offset + state.shown.length : undefined,
    totalLines: full ? undefined : state.number - 1,
  };
}

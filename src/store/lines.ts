import type { FileHandle } from 'node:fs/promises';

/** Longest line that is read; writers refuse longer ones. Keeps a reader's memory bounded. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** One line without its newline; `text` is missing when it is over the limit. */
export interface Line {
  readonly bytes: number;
  readonly text?: Buffer;
}

/** Where a scan begins, and what is known of the file. */
export interface ScanStart {
  /** Offset of the first line. */
  readonly start: number;
  /** Bytes that stood right before it; if others do now, nothing is read. */
  readonly witness?: Buffer;
  /** Size of the file, for a buffer that fits. */
  readonly size?: number;
}

export interface Scan {
  /** Where the unterminated rest starts; the end of the file when the last line is whole. */
  readonly restStart: number;
  /** The file's end as this scan saw it. */
  readonly end: number;
  /** What follows the last newline: a torn line, or one that is just being written. */
  readonly rest: Line;
  /** The bytes before `restStart`, for the next scan. */
  readonly witness: Buffer;
  /** False: the file was replaced in place, and nothing was handed over. */
  readonly isWitnessed: boolean;
}

/** Reads a regular file from `start` to its end, chunk by chunk, and hands over each whole line. */
export async function scanLines(
  handle: FileHandle,
  { start, witness = NO_BYTES, size = Number.POSITIVE_INFINITY }: ScanStart,
  onLine: (line: Line) => void,
): Promise<Scan> {
  const from = start - witness.length;
  // One byte more than there is: a read that does not fill its buffer has seen the end.
  const chunk = Buffer.allocUnsafe(Math.max(WITNESS_BYTES, Math.min(CHUNK_BYTES, size - from + 1)));
  const open = new OpenLine();
  let end = from;
  let tail: Buffer = NO_BYTES;
  for (let isFull = true; isFull;) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, end);
    const bytes = chunk.subarray(0, bytesRead);
    const skipped = end === from ? witness.length : 0;
    if (!bytes.subarray(0, skipped).equals(witness.subarray(0, skipped))) return notWitnessed(start);
    cutLines(bytes.subarray(skipped), open, onLine);
    tail = lastBytes(tail, bytes);
    end += bytesRead;
    isFull = bytesRead === chunk.length;
  }
  const rest = open.take();
  const restStart = end - rest.bytes;
  const before = rest.bytes === 0 ? tail : await readBefore(handle, restStart);
  return { restStart, end, rest, witness: before, isWitnessed: true };
}

/** Tells a file that was replaced in place. */
const WITNESS_BYTES = 64;

const NO_BYTES = Buffer.alloc(0);

function notWitnessed(start: number): Scan {
  return { restStart: start, end: start, rest: { bytes: 0 }, witness: NO_BYTES, isWitnessed: false };
}

function lastBytes(before: Buffer, bytes: Buffer): Buffer {
  if (bytes.length >= WITNESS_BYTES) return Buffer.from(bytes.subarray(-WITNESS_BYTES));
  return Buffer.concat([before, bytes]).subarray(-WITNESS_BYTES);
}

async function readBefore(handle: FileHandle, position: number): Promise<Buffer> {
  const length = Math.min(WITNESS_BYTES, position);
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, position - length);
  return buffer.subarray(0, bytesRead);
}

function cutLines(chunk: Buffer, open: OpenLine, onLine: (line: Line) => void): void {
  let from = 0;
  for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
    open.add(chunk.subarray(from, to));
    onLine(open.take());
    from = to + 1;
  }
  open.add(chunk.subarray(from));
}

/** The line under way, in pieces; drops them once it is too long. */
class OpenLine {
  #pieces: Buffer[] = [];
  #bytes = 0;

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    // Copied, because the chunk is filled again by the next read.
    if (this.#bytes <= MAX_LINE_BYTES) this.#pieces.push(Buffer.from(piece));
    else this.#pieces = [];
  }

  take(): Line {
    const bytes = this.#bytes;
    const line = bytes > MAX_LINE_BYTES ? { bytes } : { bytes, text: Buffer.concat(this.#pieces, bytes) };
    this.#pieces = [];
    this.#bytes = 0;
    return line;
  }
}

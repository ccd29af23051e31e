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

export interface Scan {
  /** Where the unterminated rest starts; the end of the file when the last line is whole. */
  readonly restStart: number;
  /** The file's end as this scan saw it. */
  readonly end: number;
  /** What follows the last newline: a torn line, or one that is just being written. */
  readonly rest: Line;
}

/** Reads a file from `start` to its end, chunk by chunk, and hands over each whole line. */
export async function scanLines(handle: FileHandle, start: number, onLine: (line: Line) => void): Promise<Scan> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const open = new OpenLine();
  let end = start;
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, end);
    if (bytesRead === 0) break;
    end += bytesRead;
    cutLines(chunk.subarray(0, bytesRead), open, onLine);
  }
  const rest = open.take();
  return { restStart: end - rest.bytes, end, rest };
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

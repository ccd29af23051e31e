import { appendFileSync, closeSync, existsSync, openSync, readFileSync, readSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { OutputCaps } from './job-folder.ts';

/** What a job wrote: all of it, or its two ends. */
export interface JobOutput {
  readonly head: Buffer;
  /** Empty when nothing was left out. */
  readonly tail: Buffer;
  readonly totalBytes: number;
}

/** Takes a job's output and keeps its start and its end, in files of bounded size; holds nothing in memory. */
export class OutputWriter {
  totalBytes = 0;
  readonly #folder: string;
  readonly #caps: OutputCaps;
  readonly #head: number;
  #tail: number | undefined;
  #tailBytes = 0;
  #tailIndex = 0;

  constructor(folder: string, caps: OutputCaps) {
    this.#folder = folder;
    this.#caps = caps;
    this.#head = openSync(join(folder, HEAD), 'w', 0o600);
  }

  /** May throw ENOSPC and the like; what could not be written is counted all the same. */
  write(chunk: Buffer): void {
    const room = Math.max(0, this.#caps.headBytes - this.totalBytes);
    this.totalBytes += chunk.length;
    if (room > 0) writeAll(this.#head, chunk.subarray(0, room));
    if (chunk.length > room) this.#writeTail(chunk.subarray(room));
  }

  close(): void {
    closeSync(this.#head);
    if (this.#tail !== undefined) closeSync(this.#tail);
  }

  // Two files take turns, each as large as the tail that is wanted: together they always hold at least that much.
  #writeTail(chunk: Buffer): void {
    if (this.#tail === undefined || this.#tailBytes >= this.#caps.tailBytes) this.#turnTail();
    const room = this.#caps.tailBytes - this.#tailBytes;
    this.#tailBytes += Math.min(room, chunk.length);
    if (this.#tail !== undefined) writeAll(this.#tail, chunk.subarray(0, room));
    if (chunk.length > room) this.#writeTail(chunk.subarray(room));
  }

  #turnTail(): void {
    if (this.#tail !== undefined) closeSync(this.#tail);
    this.#tailIndex += 1;
    this.#tail = openSync(tailFile(this.#folder, this.#tailIndex % 2), 'w', 0o600);
    // The order survives a lost supervisor: the higher turn is the later half.
    appendFileSync(join(this.#folder, TURNS), `${this.#tailIndex % 2}\n`, { mode: 0o600 });
    this.#tailBytes = 0;
  }
}

/** What is there so far; `totalBytes` only when the job's ending is known. */
export function readOutput(folder: string, caps: OutputCaps, totalBytes?: number): JobOutput {
  const head = readWhole(join(folder, HEAD));
  const tail = Buffer.concat(tailOrder(folder).map((index) => readWhole(tailFile(folder, index))));
  const kept = tail.subarray(Math.max(0, tail.length - caps.tailBytes));
  return { head, tail: kept, totalBytes: totalBytes ?? head.length + kept.length };
}

/** The last bytes written so far, for a line of progress. */
export function readOutputEnd(folder: string, bytes = 2048): Buffer {
  const latest = tailOrder(folder).at(-1);
  const path = latest === undefined ? join(folder, HEAD) : tailFile(folder, latest);
  if (!existsSync(path)) return Buffer.alloc(0);
  const file = openSync(path, 'r');
  try {
    const { size } = statSync(path);
    const buffer = Buffer.alloc(Math.min(bytes, size));
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, size - buffer.length));
  } finally {
    closeSync(file);
  }
}

const HEAD = 'output';
const TURNS = 'output.turns';

function tailFile(folder: string, index: number): string {
  return join(folder, `output.tail${index}`);
}

function tailOrder(folder: string): readonly number[] {
  const turns = readWhole(join(folder, TURNS)).toString('latin1').split('\n').filter(Boolean).map(Number);
  return turns.slice(-2);
}

function readWhole(path: string): Buffer {
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}

function writeAll(file: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

import type { FileHandle } from 'node:fs/promises';
import { openRegular } from './files.ts';
import { scanLines } from './lines.ts';
import { parseJson, parseRecord } from './parse.ts';
import { RecordList } from './record-list.ts';
import type { Skipped } from './record-list.ts';
import type { SessionMetaRecord, TranscriptRecord } from './records.ts';

export interface ReadTranscript {
  readonly meta: SessionMetaRecord | undefined;
  /** In file order, the first one with an id only; unknown types included. */
  readonly records: readonly TranscriptRecord[];
  readonly skipped: Skipped;
  /** Bytes of a last line that is not whole: torn, or just being written. */
  readonly tornBytes: number;
}

/** A first line is a `session_meta` of a few kB; more is not read to find out whether it is one. */
const FIRST_LINE_BYTES = 1024 * 1024;
const TAIL_BYTES = 64 * 1024;

/** Reads a whole transcript for people. Bad lines are skipped and counted; only an unreadable file throws. */
export async function readTranscript(file: string): Promise<ReadTranscript> {
  return withFile(file, async (handle) => {
    const list = new RecordList();
    const { rest } = await scanLines(handle, { start: 0 }, (line) => list.addLine(line));
    const last = rest.text && parseRecord(rest.text);
    if (last !== undefined) list.add(last);
    const meta = list.records.find((record) => record.type === 'session_meta');
    return { meta, records: list.records, skipped: list.skipped, tornBytes: last === undefined ? rest.bytes : 0 };
  });
}

/** The `session_meta` that opens a transcript, read with bounded effort; the error says why there is none. */
export async function readFirstRecord(file: string): Promise<SessionMetaRecord> {
  const head = await readRange(file, 0, FIRST_LINE_BYTES);
  if (head.length === 0) throw new Error('the file is empty');
  const newline = head.indexOf('\n');
  if (newline === -1 && head.length === FIRST_LINE_BYTES) {
    throw new Error(`the first line is longer than ${FIRST_LINE_BYTES} bytes`);
  }
  const line = newline === -1 ? head : head.subarray(0, newline);
  const record = parseRecord(line);
  if (record?.type === 'session_meta') return record;
  throw new Error(
    parseJson(line) === undefined ? 'the first line is not JSON' : 'the first record is not session_meta',
  );
}

/** Records among the last bytes of a file: enough to see how a long transcript ended. */
export async function readLastRecords(file: string): Promise<readonly TranscriptRecord[]> {
  const tail = await readRange(file, -TAIL_BYTES, TAIL_BYTES);
  const list = new RecordList();
  // The first piece may be the end of a longer line; then it does not parse and is passed over.
  for (const text of splitLines(tail)) list.addLine({ bytes: text.length, text });
  return list.records;
}

/** At most `length` bytes from `start`, which counts from the end when negative. */
function readRange(file: string, start: number, length: number): Promise<Buffer> {
  return withFile(file, async (handle) => {
    const { size } = await handle.stat();
    const position = start < 0 ? Math.max(0, size + start) : start;
    const wanted = Math.min(length, size - position);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(wanted), 0, wanted, position);
    return buffer.subarray(0, bytesRead);
  });
}

function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let from = 0;
  for (let to = bytes.indexOf('\n'); to !== -1; to = bytes.indexOf('\n', from)) {
    lines.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return [...lines, bytes.subarray(from)];
}

async function withFile<T>(file: string, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  const { handle } = await openRegular(file);
  try {
    return await work(handle);
  } finally {
    await handle.close();
  }
}

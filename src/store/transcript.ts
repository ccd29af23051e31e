import { constants } from 'node:fs';
import { lstat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { crashPoint } from '../crash-points.ts';
import { RunFileError, appendLine, createFile, openRegular } from './files.ts';
import type { OpenedFile } from './files.ts';
import { MAX_LINE_BYTES, scanLines } from './lines.ts';
import type { Line, Scan } from './lines.ts';
import { parseRecord } from './parse.ts';
import { RecordList } from './record-list.ts';
import type { Skipped } from './record-list.ts';
import { RECORD_VERSION } from './records.ts';
import type { TranscriptRecord } from './records.ts';
import { TranscriptCache } from './transcript-cache.ts';
import type { OpenOptions } from './transcript-cache.ts';

/** A record before it is stored: version and time are added, and `parent` (the tip) unless given. */
export type RecordDraft = DraftOf<TranscriptRecord>;
type DraftOf<R> = R extends TranscriptRecord
  ? Omit<R, 'v' | 'at' | 'parent'> & { readonly parent?: string | null }
  : never;

export interface Appended {
  /** The record that counts: the one just written, or the one that was there. */
  readonly record: TranscriptRecord;
  /** Whether the stored line is, byte for byte, the one this call wrote. */
  readonly isNew: boolean;
}

export interface AppendOptions {
  /** Also puts everything read or written so far on disk, as `sync` does. */
  readonly sync?: boolean;
}

const APPEND_TRIES = 4;

/** Opens a transcript and reads it. With `create` a missing file is made; otherwise it is an error. */
export async function openTranscript(file: string, options: OpenOptions = {}): Promise<Transcript> {
  if (options.create) await createFile(file);
  const transcript = new Transcript(file);
  await transcript.refresh();
  return transcript;
}

const processCache = new TranscriptCache(openTranscript);

/** The up-to-date transcript of a file, shared by all activities of the process and kept while memory allows. */
export function openCached(file: string, options: OpenOptions = {}): Promise<Transcript> {
  return processCache.open(file, options);
}

/**
 * A transcript file and what has been read of it. Any number of processes may append at the same time: each reads back
 * what it wrote, and the first record with an id in file order counts for all. The file is opened per operation, so an
 * instance holds memory but no descriptor and needs no closing; operations of one instance run one after another.
 */
export class Transcript {
  readonly file: string;
  readonly #list = new RecordList();
  #queue: Promise<unknown> = Promise.resolve();
  #inode = -1;
  /** Start of the last line while it has no newline, else the end of what was read. */
  #position = 0;
  #end = 0;
  /** Id of a record that is whole but for its newline; it counts, and is read again once the file grows. */
  #openId: string | undefined;
  #witness: Buffer = Buffer.alloc(0);
  /** Id of the `session_meta` that opened the file: a file with another beginning is another one. */
  #header: string | undefined;
  /** Also true for what others wrote: an answer taken from the page cache must not be lost by a power cut either. */
  #isUnsynced = false;

  constructor(file: string) {
    this.file = file;
  }

  /** In file order, the first one with an id only. The live list: it grows with `refresh` and `append`. */
  get records(): readonly TranscriptRecord[] {
    return this.#list.records;
  }

  get skipped(): Skipped {
    return this.#list.skipped;
  }

  /** Id of the last record of the conversation; null for an empty transcript. */
  get tip(): string | null {
    return this.#list.tip;
  }

  /** Size of the file as last read. */
  get bytes(): number {
    return this.#end;
  }

  get(id: string): TranscriptRecord | undefined {
    return this.#list.get(id);
  }

  /** Reads what was appended since the last look; all of it when the file was cut or replaced. */
  refresh(): Promise<void> {
    return this.#exclusive(async () => {
      const { ino, size } = await lstat(this.file);
      const isRead = ino === this.#inode && size === this.#end;
      if (!isRead) await this.#withFile(constants.O_RDONLY, (opened) => this.#readOn(opened));
      this.#assertSame();
    });
  }

  /** Stores a record unless its id is there already. Without `sync` it is not yet on disk. */
  async append(draft: RecordDraft, options: AppendOptions = {}): Promise<Appended> {
    const [appended] = await this.appendAll([draft], options);
    if (appended === undefined) throw new Error(`nothing came back for record ${draft.id}`);
    return appended;
  }

  /** Like `append`, for several records in one write; one answer a draft, in the same order. */
  appendAll(drafts: readonly RecordDraft[], { sync = false }: AppendOptions = {}): Promise<Appended[]> {
    return this.#exclusive(() =>
      this.#withFile(constants.O_RDWR | constants.O_APPEND, async (opened) => {
        await this.#readOn(opened);
        this.#assertSame();
        const appended = await this.#appendMissing(opened.handle, drafts);
        if (sync) await this.#flush(opened.handle);
        return appended;
      }),
    );
  }

  /** Puts everything read or written so far on disk. To be called before an activity completes. */
  sync(): Promise<void> {
    return this.#exclusive(async () => {
      if (this.#isUnsynced) await this.#withFile(constants.O_RDONLY, ({ handle }) => this.#flush(handle));
    });
  }

  async #flush(handle: FileHandle): Promise<void> {
    if (!this.#isUnsynced) return;
    crashPoint('fsync.before');
    await handle.datasync();
    crashPoint('fsync.after');
    this.#isUnsynced = false;
  }

  async #appendMissing(handle: FileHandle, drafts: readonly RecordDraft[]): Promise<Appended[]> {
    const written = new Map<string, string>();
    for (let tries = 0; tries < APPEND_TRIES; tries += 1) {
      const lines = toLines(this.#missing(drafts), this.tip);
      if (lines.size === 0) return drafts.map((draft) => this.#answer(draft.id, written));
      for (const [id, line] of lines) written.set(id, line);
      // A torn tail stays as a line of its own, which readers skip and count.
      const repair = this.#position === this.#end ? '' : '\n';
      crashPoint('append.before');
      const bytes = Buffer.from(repair + [...lines.values()].map((line) => `${line}\n`).join(''));
      await appendLine(handle, bytes);
      crashPoint('append.after');
      // Read back: another process may have been first, or have left a torn piece that our line fused with.
      await this.#readNew(handle, this.#end + bytes.length);
    }
    if (this.#missing(drafts).length === 0) return drafts.map((draft) => this.#answer(draft.id, written));
    const problem =
      `${this.file}: record ${drafts.at(-1)?.id} could not be read back after ${APPEND_TRIES} tries. ` +
      'Is the disk full, or the folder on a file system without atomic appends?';
    // The kernel took a part and told no code; whoever waits out a full disk must know this for one.
    throw Object.assign(new Error(problem), { code: 'ENOSPC' });
  }

  #missing(drafts: readonly RecordDraft[]): RecordDraft[] {
    return drafts.filter((draft) => this.#list.get(draft.id) === undefined);
  }

  #answer(id: string, written: ReadonlyMap<string, string>): Appended {
    const record = this.#list.get(id);
    if (record === undefined) throw new Error(`${this.file}: record ${id} is not there`);
    const line = written.get(id);
    return { record, isNew: line !== undefined && line === JSON.stringify(record) };
  }

  async #readOn({ handle, stats: { ino, size } }: OpenedFile): Promise<void> {
    if (ino === this.#inode && size === this.#end) return;
    if (ino !== this.#inode || size < this.#end) this.#forget();
    this.#inode = ino;
    await this.#readNew(handle, size);
  }

  async #readNew(handle: FileHandle, size: number): Promise<void> {
    const scan = await this.#scan(handle, size);
    if (scan !== undefined) return this.#settle(scan);
    this.#forget();
    const whole = await this.#scan(handle, size);
    if (whole !== undefined) this.#settle(whole);
  }

  /**
   * Undefined when what was read before no longer counts: the file was replaced in place, or the open record turned out
   * to be part of a longer, fused line, so that nobody else sees it.
   */
  async #scan(handle: FileHandle, size: number): Promise<Scan | undefined> {
    let isFirst = this.#openId !== undefined;
    let isFused = false;
    const scan = await scanLines(handle, { start: this.#position, witness: this.#witness, size }, (line) => {
      if (isFirst) isFused = !isRecord(line, this.#openId);
      isFirst = false;
      this.#list.addLine(line);
    });
    if (isFirst && scan.isWitnessed) isFused = !isRecord(scan.rest, this.#openId);
    return isFused || !scan.isWitnessed ? undefined : scan;
  }

  #settle(scan: Scan): void {
    const open = scan.rest.text && parseRecord(scan.rest.text);
    if (open !== undefined) this.#list.add(open);
    this.#openId = open?.id;
    this.#position = scan.restStart;
    this.#end = scan.end;
    this.#witness = scan.witness;
    this.#isUnsynced = true;
  }

  /** Nothing is written into a file that has taken the place of this one. */
  #assertSame(): void {
    const [first] = this.#list.records;
    if (first?.type === 'session_meta') this.#header ??= first.id;
    if (this.#header === undefined || this.#header === first?.id) return;
    const what = this.#end === 0 ? 'was emptied' : 'was replaced by another file';
    throw new RunFileError(`the transcript ${what} while it was in use (${this.file})`);
  }

  #forget(): void {
    this.#list.clear();
    this.#position = 0;
    this.#end = 0;
    this.#openId = undefined;
    this.#witness = Buffer.alloc(0);
  }

  async #withFile<T>(flags: number, work: (opened: OpenedFile) => Promise<T>): Promise<T> {
    const opened = await openRegular(this.file, flags);
    try {
      return await work(opened);
    } finally {
      await opened.handle.close();
    }
  }

  #exclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work);
    // Whoever asked gets the failure; the next in line only waits for the end.
    this.#queue = result.catch(() => undefined);
    return result;
  }
}

/** One line a new id; each chain record of the batch follows the one before it. */
function toLines(drafts: readonly RecordDraft[], tip: string | null): Map<string, string> {
  const lines = new Map<string, string>();
  const batch = new RecordList();
  for (const draft of drafts) {
    if (lines.has(draft.id)) continue;
    const record = toRecord(draft, batch.tip ?? tip);
    batch.add(record);
    lines.set(draft.id, toLine(record));
  }
  return lines;
}

function toRecord(draft: RecordDraft, tip: string | null): TranscriptRecord {
  const { id, type, parent = tip, ...rest } = draft;
  // The draft is a record but for the four fields added here; TypeScript cannot follow that through the spread.
  return { v: RECORD_VERSION, type, id, parent, at: new Date().toISOString(), ...rest } as TranscriptRecord;
}

function toLine(record: TranscriptRecord): string {
  const line = JSON.stringify(record);
  const bytes = Buffer.byteLength(line);
  if (bytes <= MAX_LINE_BYTES) return line;
  throw new Error(`Record ${record.id} has ${bytes} bytes; a transcript takes at most ${MAX_LINE_BYTES} a record`);
}

function isRecord(line: Line, id: string | undefined): boolean {
  return line.text !== undefined && parseRecord(line.text)?.id === id;
}

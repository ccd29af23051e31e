import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, openRegular } from '../../store/files.ts';
import { agentIdOfFile, rootTranscriptFile, runIdOfStem, subagentsFolder } from '../../store/layout.ts';
import { scanLines } from '../../store/lines.ts';
import { parseRecord } from '../../store/parse.ts';
import type { TranscriptRecord } from '../../store/records.ts';

/** A record and the agent in whose transcript it is. */
export interface TailedRecord {
  readonly agentId: string;
  readonly record: TranscriptRecord;
}

interface TailedFile {
  readonly agentId: string;
  readonly seen: Set<string>;
  /** Where the next look starts: right after the last whole line. */
  offset: number;
}

/** Reads what was added to a run's transcripts since the last look; files that appear later are taken in. */
export class TranscriptTail {
  readonly #rootFile: string;
  readonly #subagents: string;
  readonly #runId: string;
  readonly #files = new Map<string, TailedFile>();
  #skippedLines = 0;

  constructor(home: string, stem: string) {
    this.#runId = runIdOfStem(stem);
    this.#rootFile = rootTranscriptFile(home, stem);
    this.#subagents = subagentsFolder(home, stem);
  }

  /** Whole lines so far that are no record. */
  get skippedLines(): number {
    return this.#skippedLines;
  }

  /** New records of all agents, in the order in which they were written. */
  async poll(): Promise<readonly TailedRecord[]> {
    await this.#findFiles();
    const added: TailedRecord[] = [];
    for (const [path, file] of this.#files) added.push(...(await this.#readNew(path, file)));
    return added.sort((a, b) => (a.record.at < b.record.at ? -1 : Number(a.record.at > b.record.at)));
  }

  async #findFiles(): Promise<void> {
    this.#add(this.#rootFile, this.#runId);
    for (const name of await namesIn(this.#subagents)) {
      const agentId = agentIdOfFile(name);
      if (agentId !== undefined && name.endsWith('.jsonl')) this.#add(join(this.#subagents, name), agentId);
    }
  }

  #add(path: string, agentId: string): void {
    if (!this.#files.has(path)) this.#files.set(path, { agentId, seen: new Set(), offset: 0 });
  }

  async #readNew(path: string, file: TailedFile): Promise<readonly TailedRecord[]> {
    const opened = await openRegular(path).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    });
    if (opened === undefined) return [];
    const {
      handle,
      stats: { size },
    } = opened;
    const added: TailedRecord[] = [];
    try {
      if (size === file.offset) return [];
      const scan = await scanLines(handle, { start: file.offset, size }, (line) => {
        const record = line.text && parseRecord(line.text);
        if (record === undefined) this.#skippedLines += line.bytes === 0 ? 0 : 1;
        else if (isNew(file, record)) added.push({ agentId: file.agentId, record });
      });
      file.offset = scan.restStart;
    } finally {
      await handle.close();
    }
    return added;
  }
}

// The first record with an id wins, as for every reader.
function isNew(file: TailedFile, record: TranscriptRecord): boolean {
  if (file.seen.has(record.id)) return false;
  file.seen.add(record.id);
  return true;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

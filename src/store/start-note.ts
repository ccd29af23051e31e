import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, readSmallFile, writeAtomic } from './files.ts';
import { runFolder } from './layout.ts';
import { parseJson } from './parse.ts';

/** Who is starting a run, and where: whoever finds only the beginnings of it can ask that server, and no other. */
export interface StartNote {
  readonly clusterId: string;
  readonly namespace: string;
  /** The process that starts it. */
  readonly pid: number;
}

const NOTE_NAME = 'start.json';
const MAX_NOTE_BYTES = 4096;

/** Keeps the note in the run's folder, before anything else is. */
export async function writeStartNote(home: string, stem: string, note: StartNote): Promise<void> {
  await writeAtomic(join(runFolder(home, stem), NOTE_NAME), `${JSON.stringify({ v: 1, ...note })}\n`);
}

/** The note of a run's folder that holds nothing but what its start has put there; undefined for any other folder. */
export async function readBareStart(home: string, stem: string): Promise<StartNote | undefined> {
  const folder = runFolder(home, stem);
  const names = (await readdir(folder)).filter((name) => name !== NOTE_NAME && name !== 'objects');
  // Writes that were cut short are part of a start that was.
  if (names.some((name) => !name.startsWith(`.${NOTE_NAME}.`))) return undefined;
  try {
    const { clusterId, namespace, pid } = (parseJson(await readSmallFile(join(folder, NOTE_NAME), MAX_NOTE_BYTES)) ??
      {}) as Partial<Record<keyof StartNote, unknown>>;
    const isWhole = typeof clusterId === 'string' && typeof namespace === 'string' && typeof pid === 'number';
    return isWhole ? { clusterId, namespace, pid } : undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

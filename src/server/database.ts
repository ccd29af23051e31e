import { copyFileSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Kept beside the database: who opened it last, and what was done to it once and for all. */
export interface DatabaseNote {
  readonly serverVersion?: string;
  readonly retentionSet?: boolean;
}

export interface PrepareDatabaseOptions {
  readonly database: string;
  /** Version of the CLI that is about to open it. */
  readonly version: string;
  readonly log: (line: string) => void;
}

/**
 * Copies the database before a server of another version opens it, since a newer one may change its tables for good.
 * Nobody may have it open.
 */
export function prepareDatabase({ database, version, log }: PrepareDatabaseOptions): void {
  if (!existsSync(database)) rmSync(noteFile(database), { force: true });
  const note = readDatabaseNote(database);
  if (note.serverVersion === version) return;
  if (note.serverVersion !== undefined) {
    const copy = copyDatabase(database, note.serverVersion);
    log(`Temporal CLI ${note.serverVersion} -> ${version}: the database was copied to ${copy} first`);
  }
  writeDatabaseNote(database, { ...note, serverVersion: version });
}

export function readDatabaseNote(database: string): DatabaseNote {
  if (!existsSync(noteFile(database))) return {};
  return JSON.parse(readFileSync(noteFile(database), 'utf8')) as DatabaseNote;
}

export function writeDatabaseNote(database: string, note: DatabaseNote): void {
  writeFileSync(noteFile(database), `${JSON.stringify(note)}\n`, { mode: 0o600 });
}

function noteFile(database: string): string {
  return `${database}.note.json`;
}

// What was not yet written back is in the -wal file; SQLite finds it by the name of its database.
function copyDatabase(database: string, version: string): string {
  const copy = `${database}.${version}.bak`;
  for (const suffix of ['-wal', '-shm', '']) {
    const from = `${database}${suffix}`;
    if (existsSync(from)) copyFileSync(from, `${copy}${suffix}`, constants.COPYFILE_FICLONE);
  }
  return copy;
}

import { readFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';
import { replaceFile } from './durable-copy.ts';
import { isVersion } from './version-order.ts';

/** Kept beside the database: who opened it last, and what was done to it once and for all. */
export interface DatabaseNote {
  readonly serverVersion: string;
  readonly retentionSet?: boolean;
}

/** Where the note of a database is. */
export function noteFile(database: string): string {
  return `${database}.note.json`;
}

/** The note; undefined if there is none. Throws ConfigError for one that does not tell a version: nothing is guessed. */
export function readDatabaseNote(database: string): DatabaseNote | undefined {
  const file = noteFile(database);
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  const note = parseNote(text);
  if (note !== undefined) return note;
  throw new ConfigError(
    `${file} does not tell which Temporal CLI opened the database last: ${show(text)}. ${fixNote(database)}`,
  );
}

/** Replaces the note in one step. */
export function writeDatabaseNote(database: string, note: DatabaseNote): void {
  replaceFile(noteFile(database), `${JSON.stringify(note)}\n`);
}

/** What to do about a note that is missing or of no use. */
export function fixNote(database: string): string {
  const example = JSON.stringify({ serverVersion: '1.9.1', retentionSet: true });
  return (
    `Nothing was opened or written. Put the note back, or write ${example} there with the version of the ` +
    `Temporal CLI that used ${database} last, or set another ERRAND_HOME.`
  );
}

// What a newer errand adds to it is kept as it is.
function parseNote(text: string): DatabaseNote | undefined {
  const { serverVersion, retentionSet, ...more } = parseObject(text);
  if (typeof serverVersion !== 'string' || !isVersion(serverVersion)) return undefined;
  if (retentionSet !== undefined && typeof retentionSet !== 'boolean') return undefined;
  return { ...more, serverVersion, retentionSet };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ConfigError(`${file} cannot be read: ${message}. Nothing was opened or written.`, { cause: error });
  }
}

function show(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

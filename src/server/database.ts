import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ConfigError } from '../config.ts';
import { fixNote, noteFile, readDatabaseNote, writeDatabaseNote, type DatabaseNote } from './database-note.ts';
import { copyIntoFolder } from './durable-copy.ts';
import { instanceOf } from './instance.ts';
import { temporalVersion } from './temporal-command.ts';
import { compareVersions } from './version-order.ts';

export interface DatabaseOptions {
  readonly database: string;
  /** Version of the CLI that is about to open it. */
  readonly version: string;
}

export interface PrepareDatabaseOptions extends DatabaseOptions {
  readonly log: (line: string) => void;
}

/**
 * Copies the database before a newer CLI opens it for the first time, since that may change its tables for good, and
 * notes whose it is now. Throws ConfigError, with nothing written, for one that a newer CLI or nobody knows who has had
 * open. Nobody may have it open meanwhile.
 */
export function prepareDatabase({ database, version, log }: PrepareDatabaseOptions): DatabaseNote {
  assertMayOpen({ database, version });
  if (!existsSync(database)) rmSync(noteFile(database), { force: true });
  const note = readDatabaseNote(database);
  if (note?.serverVersion === version) return note;
  if (note !== undefined) {
    const copy = copyDatabase(database, note.serverVersion);
    log(`Temporal CLI ${note.serverVersion} -> ${version}: the database was copied to ${copy} first`);
  }
  const next = { ...note, serverVersion: version };
  writeDatabaseNote(database, next);
  return next;
}

/** Throws ConfigError if this CLI must not open the database. Writes nothing. */
export function assertMayOpen({ database, version }: DatabaseOptions): void {
  if (!existsSync(database)) return;
  const note = readDatabaseNote(database);
  if (note === undefined)
    throw new ConfigError(
      `${database} has no note (${noteFile(database)}) of the CLI that opened it last. ${fixNote(database)}`,
    );
  const order = compareVersions(note.serverVersion, version);
  if (order !== undefined && order <= 0) return;
  throw new ConfigError(refusal({ database, version }, note.serverVersion, order === undefined));
}

/** Why the embedded server of a home would not start with this CLI; undefined if its database is fine or not there. */
export function databaseProblem({ home, cli }: { home: string; cli: string }): string | undefined {
  const { database } = instanceOf(home);
  if (!existsSync(database)) return undefined;
  try {
    assertMayOpen({ database, version: temporalVersion(cli) });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function refusal({ database, version }: DatabaseOptions, last: string, isUnknown: boolean): string {
  const problem = isUnknown ? 'whose version cannot be compared' : 'which is older and could spoil it';
  return [
    `${database} was last opened by Temporal CLI ${last}; the one found is ${version}, ${problem}. Nothing was opened or written.`,
    `Install Temporal CLI ${last} or newer and name it in ERRAND_TEMPORAL_CLI, or set another ERRAND_HOME.`,
    ...goBack({ database, version }),
  ].join('\n');
}

// The write-ahead log of the newer database must not stay: SQLite would take it for the older one's.
function goBack({ database, version }: DatabaseOptions): readonly string[] {
  const copy = newestCopyFor({ database, version });
  if (copy === undefined) return [];
  const name = basename(database);
  const parts = [name, `${name}-wal`, `${name}-shm`, basename(noteFile(database))].join(', ');
  return [
    `Or go back to the copy from before that, ${copy}: run "errand down", move ${parts} out of ${dirname(database)}, ` +
      'and copy what is in that folder there. What the server has recorded since is lost; transcripts and results stay.',
  ];
}

interface DatabaseCopy {
  readonly path: string;
  readonly version: string;
  readonly number: number;
}

/** The copy that this CLI may open and that is the latest. */
function newestCopyFor({ database, version }: DatabaseOptions): string | undefined {
  const usable = copiesOf(database).filter((copy) => (compareVersions(copy.version, version) ?? 1) <= 0);
  usable.sort((a, b) => (compareVersions(a.version, b.version) ?? 0) || a.number - b.number);
  return usable.at(-1)?.path;
}

function copiesOf(database: string): readonly DatabaseCopy[] {
  const prefix = `${basename(database)}.`;
  return readdirSync(dirname(database)).flatMap((name) => {
    const [, version, number = '1'] = (name.startsWith(prefix) && COPY.exec(name.slice(prefix.length))) || [];
    return version === undefined ? [] : [{ path: join(dirname(database), name), version, number: Number(number) }];
  });
}

const COPY = /^(.+)\.bak(?:\.(\d+))?$/;

// With its note, so that the copy says itself who may open it. What was not yet written back is in the -wal file.
function copyDatabase(database: string, version: string): string {
  const folder = freeName(`${database}.${version}.bak`);
  const files = [database, `${database}-wal`, noteFile(database)].filter((file) => existsSync(file));
  copyIntoFolder({ files, folder, draft: `${database}.copying` });
  return folder;
}

// An earlier copy is never touched: after going back and upgrading again it is another one.
function freeName(name: string, number = 1): string {
  const candidate = number === 1 ? name : `${name}.${number}`;
  return existsSync(candidate) ? freeName(name, number + 1) : candidate;
}

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config.ts';
import { prepareDatabase } from '../../src/server/database.ts';

let folder: string;
let lines: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'errand-database-'));
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...names: string[]) => join(folder, ...names);
const read = (...names: string[]) => readFileSync(at(...names), 'utf8');
const note = () => JSON.parse(read('temporal.db.note.json')) as unknown;
const open = (version: string) =>
  prepareDatabase({ database: at('temporal.db'), version, log: (line) => void lines.push(line) });

/** What a server of this version leaves. */
function use(version: string, content: string): void {
  open(version);
  writeFileSync(at('temporal.db'), content);
  writeFileSync(at('temporal.db-wal'), `${content}, not yet written back`);
}

function contents(): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(names.map((name) => [name, statSync(at(name)).isFile() ? read(name) : 'a folder']));
}

function refused(version: string): string {
  const before = contents();
  const refusal = thrown(() => open(version));
  expect(refusal).toBeInstanceOf(ConfigError);
  expect(contents()).toEqual(before);
  expect(lines).toEqual([]);
  return (refusal as ConfigError).message;
}

function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error('it was not refused');
}

describe('prepareDatabase', () => {
  it('notes who opens a new database', () => {
    open('1.9.1');
    expect(note()).toEqual({ serverVersion: '1.9.1' });
    expect(statSync(at('temporal.db.note.json')).mode & 0o077).toBe(0);
  });

  it('copies nothing for the same version, and keeps what else the note says', () => {
    use('1.9.1', 'one');
    writeFileSync(at('temporal.db.note.json'), '{"serverVersion":"1.9.1","retentionSet":true,"from":"a newer errand"}');
    const before = contents();
    expect(open('1.9.1')).toMatchObject({ retentionSet: true });
    expect(contents()).toEqual(before);
    open('1.10.0');
    expect(note()).toEqual({ serverVersion: '1.10.0', retentionSet: true, from: 'a newer errand' });
  });

  it('promise 10: copies the whole database, its note included, before a newer CLI opens it', () => {
    use('1.9.1', 'one');
    open('1.10.0');
    expect(read('temporal.db.1.9.1.bak', 'temporal.db')).toBe('one');
    expect(read('temporal.db.1.9.1.bak', 'temporal.db-wal')).toBe('one, not yet written back');
    expect(read('temporal.db.1.9.1.bak', 'temporal.db.note.json')).toContain('"1.9.1"');
    expect(note()).toEqual({ serverVersion: '1.10.0' });
    expect(lines).toEqual([
      `Temporal CLI 1.9.1 -> 1.10.0: the database was copied to ${at('temporal.db.1.9.1.bak')} first`,
    ]);
  });

  it('promise 10: a database that a newer CLI had open is refused, and nothing is written', () => {
    use('1.10.0', 'ten');
    const words = refused('1.9.1');
    for (const part of [
      at('temporal.db'),
      'Temporal CLI 1.10.0',
      'the one found is 1.9.1',
      'ERRAND_TEMPORAL_CLI',
      'ERRAND_HOME',
    ])
      expect(words).toContain(part);
    expect(words).not.toContain('.bak');
  });

  it('names the copy that the older CLI may open, and it opens when put back as told', () => {
    use('1.8.0', 'eight');
    use('1.9.1', 'nine');
    use('1.10.0', 'ten');
    lines = [];
    const copy = at('temporal.db.1.9.1.bak');
    expect(refused('1.9.2')).toContain(copy);
    expect(refused('1.8.5')).toContain(at('temporal.db.1.8.0.bak'));
    putBack(copy);
    open('1.9.2');
    expect(read('temporal.db')).toBe('nine');
  });

  it('promise 10: a second upgrade after going back leaves the first copy as it is', () => {
    use('1.9.1', 'nine');
    use('1.10.0', 'ten');
    putBack(at('temporal.db.1.9.1.bak'));
    use('1.9.1', 'nine, gone on');
    open('1.10.0');
    expect(read('temporal.db.1.9.1.bak', 'temporal.db')).toBe('nine');
    expect(read('temporal.db.1.9.1.bak.2', 'temporal.db')).toBe('nine, gone on');
    lines = [];
    expect(refused('1.9.1')).toContain(at('temporal.db.1.9.1.bak.2'));
  });

  it('does not take what a killed copy left for one', () => {
    use('1.9.1', 'nine');
    mkdirSync(at('temporal.db.copying'));
    writeFileSync(at('temporal.db.copying', 'temporal.db'), 'ni');
    open('1.10.0');
    expect(existsSync(at('temporal.db.copying'))).toBe(false);
    expect(read('temporal.db.1.9.1.bak', 'temporal.db')).toBe('nine');
  });

  it('a copy that fails half-way leaves no copy, and the database to the old version', () => {
    use('1.9.1', 'nine');
    // A folder in the place of a file of the set: it cannot be copied as one.
    rmSync(at('temporal.db-wal'));
    mkdirSync(at('temporal.db-wal'));
    const before = contents();
    expect(() => open('1.10.0')).toThrow();
    expect(contents()).toEqual(before);
  });

  it.each([
    ['damaged', '{"serverVersion":"1.9'],
    ['empty', ''],
    ['of another shape', '{"version":2,"opened":["1.10.0"]}'],
    ['of a list', '["1.9.1"]'],
    ['with a version that is none', '{"serverVersion":"newest"}'],
    ['with a flag that is none', '{"serverVersion":"1.9.1","retentionSet":"yes"}'],
  ])('promise 10: with a note that is %s nothing is guessed, opened or written', (_kind, text) => {
    use('1.9.1', 'nine');
    writeFileSync(at('temporal.db.note.json'), text);
    const words = refused('1.10.0');
    expect(words).toContain(`${at('temporal.db.note.json')} does not tell which Temporal CLI`);
    expect(words).toContain('or write {"serverVersion":"1.9.1","retentionSet":true} there');
    refused('1.9.1');
  });

  it('refuses a database without a note, and one whose note cannot be read', () => {
    use('1.9.1', 'nine');
    rmSync(at('temporal.db.note.json'));
    expect(refused('1.9.1')).toContain('has no note');
    mkdirSync(at('temporal.db.note.json'));
    expect(refused('1.9.1')).toContain('temporal.db.note.json cannot be read: EISDIR');
  });

  it('refuses when the version of the CLI cannot be compared', () => {
    use('1.9.1', 'nine');
    expect(refused('1.9')).toContain('whose version cannot be compared');
  });
});

function putBack(copy: string): void {
  for (const name of ['temporal.db', 'temporal.db-wal', 'temporal.db-shm', 'temporal.db.note.json'])
    rmSync(at(name), { force: true });
  cpSync(copy, folder, { recursive: true });
}

import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../src/config.ts';
import { homeId, homeProblem, homeWriteProblem } from '../src/home.ts';
import { ensureServer } from '../src/server/index.ts';
import { mountSmallDisk, remount, smallDiskProblem, unmount } from './helpers/small-disk.ts';

const noMount = smallDiskProblem();

let folder: string;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'errand-home-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const load = (home: string) => loadConfig({ env: { ERRAND_HOME: home } });

describe('a home', () => {
  it('may be there, empty, or not there yet', () => {
    for (const home of [folder, join(folder, 'new/and/deep')]) {
      expect(homeProblem(home)).toBeUndefined();
      expect(homeWriteProblem(home)).toBeUndefined();
      expect(load(home).home.value).toBe(home);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it('that is a file, or lies in one, is refused by name', () => {
    const file = join(folder, 'file');
    writeFileSync(file, 'somebody’s');
    expect(() => load(file)).toThrow(ConfigError);
    expect(() => load(file)).toThrow(`ERRAND_HOME is ${file}: ${file} is not a folder. Set ERRAND_HOME to another`);
    expect(() => load(join(file, 'below'))).toThrow(`${file} is not a folder`);
  });

  it('promise 10: that a newer errand has laid out is refused, and nothing is written', () => {
    writeFileSync(join(folder, 'layout'), '2\n');
    expect(() => load(folder)).toThrow(ConfigError);
    expect(() => load(folder)).toThrow(
      'was laid out by a newer errand (layout 2, this one knows 1); nothing was written',
    );
    writeFileSync(join(folder, 'layout'), 'two');
    expect(() => load(folder)).toThrow('does not hold the number of a layout: "two"');
    expect(readdirSync(folder)).toEqual(['layout']);
    writeFileSync(join(folder, 'layout'), '1\n');
    expect(load(folder).home.value).toBe(folder);
  });

  it.runIf(noMount === undefined)(
    'that is read-only is refused before anything starts, and can still be looked at',
    async () => {
      mountSmallDisk(folder);
      try {
        const id = homeId(folder);
        expect(remount(folder, 'ro')).toBe(true);
        for (const home of [folder, join(folder, 'new')]) {
          const asked = ensureServer({ home, log: () => undefined });
          await expect(asked).rejects.toThrow(ConfigError);
          await expect(asked).rejects.toThrow(`${folder} cannot be written: its file system is read-only`);
        }
        expect(homeId(load(folder).home.value)).toBe(id);
      } finally {
        unmount(folder);
      }
    },
  );

  it.runIf(process.getuid?.() !== 0)('that belongs to somebody else is refused before anything starts', async () => {
    mkdirSync(join(folder, 'closed'));
    chmodSync(join(folder, 'closed'), 0o500);
    const asked = ensureServer({ home: join(folder, 'closed'), log: () => undefined });
    await expect(asked).rejects.toThrow('closed cannot be written: you have no permission');
  });
});

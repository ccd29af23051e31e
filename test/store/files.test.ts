import { execFileSync } from 'node:child_process';
import { mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NotAFile, createFile, ensureFolder, openRegular, readSmallFile, writeAtomic } from '../../src/store/files.ts';
import { transcriptFile } from '../../src/store/layout.ts';
import { writeMeta } from '../../src/store/meta.ts';
import { putObject } from '../../src/store/objects.ts';
import { openTranscript } from '../../src/store/transcript.ts';
import { CHILD, CHILD_ID, ROOT, STEM, freshFolder, meta, session } from './fixtures.ts';

describe('modes', () => {
  it.each([0o000, 0o022, 0o777])('files are 0600 and folders 0700 under umask %o', async (umask) => {
    const home = freshFolder();
    const before = process.umask(umask);
    onTestFinished(() => void process.umask(before));
    await (await openTranscript(transcriptFile(home, CHILD), { create: true })).append(session({ agentId: CHILD_ID }));
    await putObject(home, STEM, 'a policy');
    await writeMeta(home, ROOT, meta());
    const found = await readdir(home, { recursive: true, withFileTypes: true });
    const modes = await Promise.all(
      found.map(
        async (entry) =>
          `${entry.isDirectory() ? 'folder' : 'file'} ${(await stat(join(entry.parentPath, entry.name))).mode.toString(8)}`,
      ),
    );
    expect(new Set(modes)).toEqual(new Set(['folder 40700', 'file 100600']));
  });
});

describe('writeAtomic', () => {
  it('replaces the content and leaves no temporary file', async () => {
    const folder = join(freshFolder(), 'a/b');
    await writeAtomic(join(folder, 'f'), 'old');
    await writeAtomic(join(folder, 'f'), Buffer.from('new'));
    expect(await readFile(join(folder, 'f'), 'utf8')).toBe('new');
    expect(await readdir(folder)).toEqual(['f']);
  });

  it('leaves the old content and nothing else when it fails', async () => {
    const folder = freshFolder();
    await mkdir(join(folder, 'f/x'), { recursive: true });
    await expect(writeAtomic(join(folder, 'f'), 'new')).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(await readdir(folder)).toEqual(['f']);
  });

  it('never shows a reader half of the content', async () => {
    const file = join(freshFolder(), 'f');
    await writeAtomic(file, 'a'.repeat(100_000));
    const writing = Promise.all(['b', 'c', 'd'].map((letter) => writeAtomic(file, letter.repeat(100_000))));
    for (let i = 0; i < 50; i += 1)
      expect(await readFile(file, 'utf8')).toMatch(/^(a{100000}|b{100000}|c{100000}|d{100000})$/);
    await writing;
  });
});

describe('openRegular', () => {
  it('refuses what is not a regular file, at once', async () => {
    const folder = freshFolder();
    execFileSync('mkfifo', [join(folder, 'fifo')]);
    await writeFile(join(folder, 'file'), '');
    await symlink('file', join(folder, 'link'));
    await expect(openRegular(join(folder, 'fifo'))).rejects.toThrow(/fifo is not a regular file/);
    await expect(openRegular(join(folder, 'link'))).rejects.toThrow(/link is a symbolic link, which is not followed/);
    await expect(openRegular(join(folder, 'link'))).rejects.toBeInstanceOf(NotAFile);
    await expect(openRegular(folder)).rejects.toThrow(/not a regular file/);
  });
});

it('createFile says who made the file', async () => {
  const file = join(freshFolder(), 'a/f');
  expect([await createFile(file), await createFile(file)]).toEqual([true, false]);
});

it('ensureFolder names what is in the way', async () => {
  const folder = freshFolder();
  await writeFile(join(folder, 'f'), '');
  await expect(ensureFolder(join(folder, 'f'))).rejects.toThrow(/f is in the way/);
});

it('readSmallFile does not fill memory', async () => {
  const file = join(freshFolder(), 'f');
  await writeFile(file, '12345');
  await expect(readSmallFile(file, 4)).rejects.toThrow('has 5 bytes; at most 4');
});

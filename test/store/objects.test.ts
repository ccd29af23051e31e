import { createHash } from 'node:crypto';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { objectFile } from '../../src/store/layout.ts';
import { getObject, putObject } from '../../src/store/objects.ts';
import { STEM, freshFolder } from './fixtures.ts';

it('stores data once under its hash and gives it back', async () => {
  const home = freshFolder();
  const hash = await putObject(home, STEM, 'a policy');
  expect(hash).toBe(createHash('sha256').update('a policy').digest('hex'));
  const file = objectFile(home, STEM, hash);
  const { ino } = await stat(file);
  expect(await putObject(home, STEM, Buffer.from('a policy'))).toBe(hash);
  expect((await stat(file)).ino).toBe(ino);
  expect((await getObject(home, STEM, hash)).toString()).toBe('a policy');
});

it('refuses a changed object, naming file and both hashes, and heals it on the next put', async () => {
  const home = freshFolder();
  const hash = await putObject(home, STEM, 'a policy');
  const file = objectFile(home, STEM, hash);
  await writeFile(file, 'a wider policy');
  const found = createHash('sha256').update('a wider policy').digest('hex');
  await expect(getObject(home, STEM, hash)).rejects.toThrow(
    `${file} was changed: its sha256 is ${found}, expected ${hash}`,
  );
  await putObject(home, STEM, 'a policy');
  expect((await getObject(home, STEM, hash)).toString()).toBe('a policy');
});

it('many puts at once leave one whole file', async () => {
  const home = freshFolder();
  const data = 'x'.repeat(100_000);
  const [hash = ''] = await Promise.all(Array.from({ length: 10 }, () => putObject(home, STEM, data)));
  expect(await readdir(dirname(objectFile(home, STEM, hash)))).toEqual([hash]);
  expect((await getObject(home, STEM, hash)).toString()).toBe(data);
});

it('a missing object is an error that names the file', async () => {
  const hash = 'a'.repeat(64);
  await expect(getObject(freshFolder(), STEM, hash)).rejects.toThrow(new RegExp(`ENOENT.*${hash}`));
});

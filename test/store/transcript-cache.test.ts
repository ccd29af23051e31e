import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TranscriptCache } from '../../src/store/transcript-cache.ts';
import { openCached, openTranscript } from '../../src/store/transcript.ts';
import { event, freshFolder, session, toText, user } from './fixtures.ts';

it('shares one transcript a file, brought up to date', async () => {
  const file = join(freshFolder(), 't.jsonl');
  const [one, other] = await Promise.all([openCached(file, { create: true }), openCached(file)]);
  expect(one).toBe(other);
  await appendFile(file, toText([session()]));
  expect((await openCached(file)).records).toHaveLength(1);
});

it('holds no more text than it may, the least recently used out first', async () => {
  const folder = freshFolder();
  const cache = new TranscriptCache(openTranscript, 10_000);
  const files = Array.from({ length: 20 }, (_, i) => join(folder, `${i}.jsonl`));
  for (const file of files) {
    await writeFile(file, toText([user({}, 'x'.repeat(3000))]));
    await cache.open(file);
    await cache.open(files[0] ?? '');
    expect(cache.bytes).toBeLessThanOrEqual(10_000);
  }
  expect(cache.files).toEqual([files[18], files[19], files[0]]);
});

it('counts what was appended since', async () => {
  const folder = freshFolder();
  const cache = new TranscriptCache(openTranscript, 10_000);
  const first = await cache.open(join(folder, 'a.jsonl'), { create: true });
  await first.append(user({}, 'x'.repeat(20_000)));
  expect(cache.files).toHaveLength(1);
  await cache.open(join(folder, 'b.jsonl'), { create: true });
  expect(cache.files).toEqual([join(folder, 'b.jsonl')]);
  // Out of the cache, it still works, and so does a second instance beside it.
  const again = await cache.open(join(folder, 'a.jsonl'));
  await first.append(event({}, 'a'));
  await again.append(event({}, 'a'));
  await first.refresh();
  expect(again.records).toEqual(first.records);
  expect(again.records).toHaveLength(2);
});

it('keeps nothing of a file that could not be opened', async () => {
  const file = join(freshFolder(), 't.jsonl');
  const cache = new TranscriptCache(openTranscript);
  await expect(cache.open(file)).rejects.toThrow(/ENOENT/);
  expect(cache.files).toEqual([]);
  expect((await cache.open(file, { create: true })).records).toEqual([]);
});

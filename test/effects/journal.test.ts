import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { callFolder, openCallJournal } from '../../src/effects/journal.ts';
import { testOwner } from './call-fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'errand-journal-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const ref = { runId: 'fix-login-abc123', agentId: '0123456789ab', transcript: '', epoch: 1, branch: '' };
let calls = 0;
const open = () => openCallJournal(callFolder(root, ref, `t1.${calls++}`));

it('a call has a folder of its own for each epoch and branch', () => {
  expect(callFolder('/home/u/.errand', ref, 't7.2')).toBe(
    '/home/u/.errand/journal/fix-login-abc123/0123456789ab/1--t7.2',
  );
  expect(callFolder('/h', { ...ref, branch: 'b' }, 't7.2')).toMatch(/\/1-b-t7\.2$/);
});

it.each(['../x', 'a/b', '..'])('%s is no name for a folder', (runId) => {
  expect(() => callFolder('/h', { ...ref, runId }, 't1.0')).toThrow('cannot be the name');
});

it('the first result is kept, of many at once too', async () => {
  const journal = open();
  expect(await journal.kept()).toBeUndefined();
  const results = await Promise.all([1, 2, 3, 4].map((n) => journal.keep({ text: `result ${n}`, isError: false })));
  expect(new Set(results.map(({ text }) => text)).size).toBe(1);
  expect(await journal.kept()).toEqual(results[0]);
  expect(await journal.keep({ text: 'late', isError: true })).toEqual(results[0]);
});

it('one attempt has the call until another takes it over', async () => {
  const journal = open();
  const [first, second] = [testOwner(1), testOwner(2)];
  expect(await journal.claim(first)).toEqual({ fresh: true });
  expect(await journal.claim(second)).toEqual({ fresh: false, previous: first });
  expect([await journal.holds(first), await journal.holds(second)]).toEqual([true, false]);
  await journal.takeOver(second);
  expect([await journal.holds(first), await journal.holds(second)]).toEqual([false, true]);
});

it('files and folders are for their owner only', async () => {
  const journal = open();
  await journal.keep({ text: 'x', isError: false });
  expect(statSync(journal.folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(journal.folder, 'result.json')).mode & 0o777).toBe(0o600);
});

it.each([
  ['{"v":1,"value', /is damaged/],
  ['{"v":99,"value":{}}', /newer errand \(version 99/],
  ['[]', /not a file of errand/],
])('a result file with %s stops the attempt and stays as it is', async (content, message) => {
  const journal = open();
  await journal.claim(testOwner());
  const file = join(journal.folder, 'result.json');
  writeFileSync(file, content);
  await expect(journal.kept()).rejects.toThrow(message);
  await expect(journal.keep({ text: 'x', isError: false })).rejects.toThrow(message);
  expect(readFileSync(file, 'utf8')).toBe(content);
});

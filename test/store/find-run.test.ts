import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { RunLookupError, findRun } from '../../src/store/find-run.ts';
import { rootTranscriptFile } from '../../src/store/layout.ts';
import { freshFolder, writeRun } from './fixtures.ts';

const NAMES = [
  'fix',
  'fix-parser-aaaaaa',
  'fix-tests-bbbbbb',
  'write-docs-cccccc',
  'prefix-dddddd',
  'rename-all-eeeeee',
];

async function homeWithRuns(): Promise<string> {
  const home = freshFolder();
  for (const [i, name] of NAMES.entries()) await writeRun(home, name, new Date(Date.UTC(2026, 0, 1 + i)));
  return home;
}

it.each([
  ['fix', 'fix'],
  ['fix-p', 'fix-parser-aaaaaa'],
  ['write', 'write-docs-cccccc'],
  ['docs', 'write-docs-cccccc'],
  ['dddddd', 'prefix-dddddd'],
  ['2026/01/03/rollout-2026-01-03T00-00-00-000Z-fix-tests-bbbbbb', 'fix-tests-bbbbbb'],
])('%s is one run: exact before prefix before part', async (text, runId) => {
  const home = await homeWithRuns();
  const found = await findRun(home, text);
  expect(found).toEqual({ runId, transcript: found.transcript, file: rootTranscriptFile(home, found.transcript) });
});

it('more than one is an error that lists them', async () => {
  const finding = findRun(await homeWithRuns(), 'fix-');
  await expect(finding).rejects.toThrow(
    '"fix-" may mean 2 runs: fix-tests-bbbbbb, fix-parser-aaaaaa. Give more of the name.',
  );
  await expect(finding).rejects.toBeInstanceOf(RunLookupError);
});

it.each(['nothing', '', '.*', '../'])('%j is no run, and the newest five are shown', async (text) => {
  await expect(findRun(await homeWithRuns(), text)).rejects.toThrow(
    `No run ${JSON.stringify(text)}. The newest are: ${NAMES.slice(1).reverse().join(', ')}`,
  );
});

it('the same id twice is told apart by its file', async () => {
  const home = await homeWithRuns();
  await writeRun(home, 'fix', new Date(Date.UTC(2026, 5, 1)));
  await expect(findRun(home, 'fix')).rejects.toThrow(/may mean 2 runs: 2026\/06\/01\/rollout.*2026\/01\/01\/rollout/);
});

it('a bad file changes nothing about which run a name means', async () => {
  const home = await homeWithRuns();
  const { file } = await findRun(home, 'fix-parser');
  await writeFile(file, 'garbage');
  await writeFile(join(dirname(file), 'fix-parser.jsonl'), '');
  expect((await findRun(home, 'fix-parser')).file).toBe(file);
});

it('says so when there are no runs', async () => {
  await expect(findRun(freshFolder(), 'x')).rejects.toThrow('No run "x". There are no runs yet.');
});

import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { awaitResult } from '../../src/client.ts';
import { callFolder } from '../../src/effects/journal.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { rootTranscriptFile } from '../../src/store/layout.ts';
import { readTranscript } from '../../src/store/read.ts';
import { createHarness } from '../helpers/harness.ts';
import { toldTrouble } from '../helpers/trouble.ts';
import type { Harness } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';

const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
const done = { text: 'done' };

describe('what is stored and cannot be used', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0 });
    await harness.write('a.txt', 'one\n');
  }, 60_000);

  afterEach(() => harness.close());

  it.each([
    ['of a newer version', '{"v":2,"value":{"kept":"by a newer errand"}}', /written by a newer errand \(version 2/],
    ['damaged', '{"v":1,"val', /is damaged. Nothing was run or overwritten/],
  ])(
    'a journal file %s: the run fails with its name, and it stays as it is',
    async (kind, text, message) => {
      const id = `journal-${kind.replaceAll(' ', '-')}`;
      const ref = { runId: id, agentId: id, transcript: '', epoch: 0, branch: '' };
      const file = join(callFolder(harness.home, ref, 't1.0'), 'result.json');
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
      await harness.startWorker();
      const run = await harness.run(toScriptPrompt([read, done]), { id });
      const ending = await awaitResult(harness.client, run.runId);
      expect(ending).toMatchObject({ status: 'failed', error: expect.stringMatching(/^Store\.Invalid: /) as string });
      expect(ending.error).toContain(file);
      expect(ending.error).toMatch(message);
      expect(await readFile(file, 'utf8')).toBe(text);
      expect((await harness.records(run)).at(-1)).toMatchObject({ type: 'end', status: 'failed', error: ending.error });
    },
    90_000,
  );

  it('a transcript that a newer version has written to: the run fails, and not a byte is added', async () => {
    await harness.startWorker();
    const run = await harness.run(toScriptPrompt([hold('newer'), done], 'newer transcript'));
    await whenHeld(harness, 'newer');
    const file = rootTranscriptFile(harness.home, run.stem);
    await appendFile(file, '{"v":2,"type":"checkpoint","id":"from:the:future","parent":null,"at":"","turn":2}\n');
    const before = await readFile(file);
    await release(harness, 'newer');
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending.status).toBe('failed');
    expect(ending.error).toMatch(
      /^Store\.Invalid: .*\.jsonl was written by a newer errand \(version 2, this one knows 1\)/,
    );
    expect(await readFile(file)).toEqual(before);
  }, 90_000);

  it('a journal folder that is a file: the run waits, says why, overwrites nothing, and goes on once it is away', async () => {
    const journal = join(harness.home, 'journal');
    await writeFile(journal, 'somebody’s');
    await harness.startWorker();
    const run = await harness.run(toScriptPrompt([read, done], 'no journal'));
    const words = await toldTrouble(harness, run);
    expect(words).toMatch(/^store not available: a file is where a folder must be since/);
    await rename(journal, `${journal}-away`);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(await readFile(`${journal}-away`, 'utf8')).toBe('somebody’s');
  }, 90_000);

  it('promise 1: a torn tail and 50 MB of rubbish in the middle of a run are passed over', async () => {
    const worker = await harness.startWorker();
    const run = await harness.run(toScriptPrompt([read, hold('torn'), read, done], 'torn'));
    await whenHeld(harness, 'torn');
    await worker.kill('SIGKILL');
    const file = rootTranscriptFile(harness.home, run.stem);
    await appendFile(file, Buffer.concat([Buffer.alloc(50 * 1024 * 1024, 'x'), Buffer.from('\n{"v":1,"type":"mess')]));
    await harness.startWorker();
    await release(harness, 'torn');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 4 });
    const { records, skipped, tornBytes } = await readTranscript(file);
    expect(skipped.lines).toBe(2);
    expect(tornBytes).toBe(0);
    expect(records.at(-1)).toMatchObject({ type: 'end', status: 'completed' });
    expect(harness.simulator.ledger().map(({ turn }) => turn)).toEqual([1, 2, 3, 4]);
  }, 120_000);

  it('a clock that is set back an hour changes nothing', async () => {
    const CLOCK_BACK = join(harness.workspace, '../clock-back');
    await harness.startWorker({
      NODE_OPTIONS: `--import=${join(import.meta.dirname, '../helpers/clock-back.mjs')}`,
      CLOCK_BACK,
    });
    const run = await harness.run(toScriptPrompt([read, hold('clock'), read, done], 'set back'));
    await whenHeld(harness, 'clock');
    await writeFile(CLOCK_BACK, '');
    await release(harness, 'clock');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 4 });
    const records = await harness.records(run);
    const times = records.map(({ at }) => Date.parse(at));
    expect(Math.min(...times.slice(-3))).toBeLessThan((times[0] ?? 0) - 3000_000);
    expect(records.at(-1)).toMatchObject({ type: 'end', status: 'completed' });
    expect(harness.simulator.ledger().map(({ turn }) => turn)).toEqual([1, 2, 3, 4]);
  }, 90_000);
});

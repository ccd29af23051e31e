import { existsSync } from 'node:fs';
import { copyFile, readFile, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { awaitResult } from '../../src/client.ts';
import { homeId } from '../../src/home.ts';
import { taskQueue } from '../../src/protocol.ts';
import { findDisagreements } from '../../src/reconcile/disagreements.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { rootTranscriptFile, runFolder, subagentsFolder } from '../../src/store/layout.ts';
import { listAgents, listRuns } from '../../src/store/listing.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { loseWorkers } from '../helpers/lose-workers.ts';
import { toldTrouble } from '../helpers/trouble.ts';
import { waitFor } from '../helpers/wait.ts';

const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
const task = (prompt: string) => ({ calls: [{ name: 'task', input: { description: 'a child that waits', prompt } }] });
const held = toScriptPrompt([hold('gone'), read, { text: 'done' }], 'gone');

describe('promise 6: a run whose files were taken away ends, with a named reason', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness();
    await harness.write('a.txt', 'one\n');
  }, 90_000);

  afterEach(() => harness.close());

  it.each([
    ['its transcript was deleted', (run: Run) => rm(fileOf(run)), /a file of the run is gone \(.*\.jsonl\)/],
    ['its transcript was emptied', (run: Run) => truncate(fileOf(run), 0), /the transcript (was emptied|is empty)/],
    [
      'the whole run was deleted',
      async (run: Run) => {
        await rm(fileOf(run));
        await rm(runFolder(harness.home, run.stem), { recursive: true });
      },
      /a file of the run is gone/,
    ],
  ])(
    '%s: what is there afterwards says so',
    async (_, damage, reason) => {
      const run = await heldRun();
      await damage(run);
      await release(harness, 'gone');
      const ending = await awaitResult(harness.client, run.runId);
      expect(ending.status).toBe('failed');
      expect(ending.error).toMatch(/^Store\.Gone: /);
      expect(ending.error).toMatch(reason);
      expect((await harness.records(run)).map(({ type }) => type)).toEqual(['session_meta', 'event', 'usage', 'end']);
      expect((await harness.records(run)).at(-1)).toMatchObject({ status: 'failed', error: ending.error });
      await expectListed(run, 'failed', ending.error);
      // What it had used by then is what its workflow knew.
      const [listed] = (await listAgents(harness.home, run.stem)).agents;
      expect(listed?.usage.own).toMatchObject({ requests: 1 });
      expect(await told(run)).toMatch(/its transcript was lost while it ran/);
    },
    120_000,
  );

  it('its transcript is another run’s now: that one is left alone, and the meta file says how it ended', async () => {
    const other = await harness.run(toScriptPrompt([{ text: 'the other is done' }], 'other'));
    await other.result();
    const run = await heldRun();
    await copyFile(fileOf(other), fileOf(run));
    const before = await readFile(fileOf(run));
    await release(harness, 'gone');
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending.status).toBe('failed');
    expect(ending.error).toMatch(/^Store\.Gone: the transcript (was replaced|is of agent)/);
    expect(await readFile(fileOf(run))).toEqual(before);
    await expectListed(run, 'failed', ending.error);
    expect(await told(run)).toContain(`its transcript is the one of agent ${other.runId}`);
  }, 120_000);

  it.each([
    ['missing', (file: string) => rm(file), /a file of the run is gone \(.*objects/],
    ['damaged', (file: string) => writeFile(file, 'x'), /objects\/[0-9a-f]{64} was changed/],
  ])(
    'what it was started with is %s: its own transcript gets the ending',
    async (_, damage, reason) => {
      const run = await heldRun();
      const objects = join(runFolder(harness.home, run.stem), 'objects');
      for (const name of await readdir(objects)) await damage(join(objects, name));
      // What a worker has read once it keeps.
      await loseWorkers(harness);
      await harness.startWorker();
      await release(harness, 'gone');
      const ending = await awaitResult(harness.client, run.runId);
      expect(ending).toMatchObject({ status: 'failed', error: expect.stringMatching(/^Store\.Gone: /) as string });
      expect(ending.error).toMatch(reason);
      expect((await harness.records(run)).at(-1)).toMatchObject({ type: 'end', status: 'failed', error: ending.error });
    },
    120_000,
  );

  it('promise 5: cancelled, it ends within seconds as cancelled, its command and its child with it', async () => {
    const child = toScriptPrompt([hold('below'), { text: 'never' }], 'below');
    const run = await harness.run(toScriptPrompt([task(child), { text: 'never' }], 'above'));
    await whenHeld(harness, 'below');
    const { agents } = await listAgents(harness.home, run.stem);
    await rm(fileOf(run));
    await rm(runFolder(harness.home, run.stem), { recursive: true });
    await run.handle.cancel();
    expect((await awaitResult(harness.client, run.runId)).status).toBe('cancelled');
    expect(harness.processesIn('go-below')).toEqual([]);
    const ends = (await harness.allRecords(run)).filter(({ type }) => type === 'end');
    expect(ends).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled' }]);
    expect((await listAgents(harness.home, run.stem)).agents.map(({ agentId }) => agentId)).toEqual(
      agents.map(({ agentId }) => agentId),
    );
  }, 120_000);

  it('a child whose transcript was deleted fails, and its parent goes on with what it is told', async () => {
    const child = toScriptPrompt([hold('child'), { text: 'never' }], 'below');
    const run = await harness.run(toScriptPrompt([task(child), { text: 'told: {{result:0}}' }], 'above'));
    await whenHeld(harness, 'child');
    for (const name of await readdir(subagentsFolder(harness.home, run.stem))) {
      if (name.endsWith('.jsonl')) await rm(join(subagentsFolder(harness.home, run.stem), name));
    }
    await release(harness, 'child');
    const result = await run.result();
    expect(result.status).toBe('completed');
    expect(JSON.stringify(await harness.records(run))).toMatch(
      /failed: Agent\.Failed: Store\.Gone: a file of the run is gone/,
    );
  }, 120_000);

  it('while the home itself is away it waits, says so, and goes on when it is back', async () => {
    const run = await heldRun();
    await rename(join(harness.home, 'transcripts'), join(harness.home, 'away'));
    await release(harness, 'gone');
    expect(await toldTrouble(harness, run)).toMatch(/^store not available: a file or folder is missing since/);
    await waitFor('the fourth try', async () => ((await pendingOf(run))?.attempt ?? 0) > 3);
    await rename(join(harness.home, 'away'), join(harness.home, 'transcripts'));
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(harness.simulator.ledger().map(({ turn }) => turn)).toEqual([1, 2, 3]);
  }, 120_000);

  it('promise 5: cancelled while the home is away, it ends without a record, and nothing is made in its place', async () => {
    const run = await heldRun();
    await rename(join(harness.home, 'transcripts'), join(harness.home, 'away'));
    await run.handle.cancel();
    expect((await awaitResult(harness.client, run.runId)).status).toBe('cancelled');
    expect(harness.processesIn('go-gone')).toEqual([]);
    expect(existsSync(join(harness.home, 'transcripts'))).toBe(false);
  }, 120_000);

  it('a file that is only being moved about is waited for', async () => {
    const run = await heldRun();
    await rename(fileOf(run), `${fileOf(run)}.away`);
    await release(harness, 'gone');
    expect(await toldTrouble(harness, run)).toMatch(/^store not available: a file of the run is gone since/);
    await rename(`${fileOf(run)}.away`, fileOf(run));
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
  }, 120_000);

  it('promise 2: a journal that is deleted under a command ends the command, and its outcome is said to be unknown', async () => {
    const steps = [
      { calls: [{ name: 'bash', input: { command: 'echo x >> count.txt; until [ -e go-j ]; do sleep 0.1; done' } }] },
      { text: 'told: {{result:0}}' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'no journal'));
    await whenHeld(harness, 'j');
    await rm(join(harness.home, 'journal', run.runId), { recursive: true });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'completed' });
    expect(result.preview).toContain('effects unknown');
    expect(await readFile(join(harness.workspace, 'count.txt'), 'utf8')).toBe('x\n');
    expect(harness.processesIn('go-j')).toEqual([]);
  }, 120_000);

  it('promise 2: a journal that is deleted with its worker dead: the command is not run again', async () => {
    const steps = [
      { calls: [{ name: 'bash', input: { command: 'echo x >> count.txt; until [ -e go-j ]; do sleep 0.1; done' } }] },
      { text: 'told: {{result:0}}' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'no journal'));
    await whenHeld(harness, 'j');
    await loseWorkers(harness);
    await rm(join(harness.home, 'journal', run.runId), { recursive: true });
    await waitFor('the command to be ended', () => harness.processesIn('go-j').length === 0);
    await harness.startWorker();
    const result = await run.result();
    expect(result.preview).toContain('effects unknown: the record of what this call had done was deleted');
    expect(await readFile(join(harness.workspace, 'count.txt'), 'utf8')).toBe('x\n');
  }, 120_000);

  async function heldRun(): Promise<Run> {
    const run = await harness.run(held);
    await whenHeld(harness, 'gone');
    return run;
  }

  function fileOf(run: Run): string {
    return rootTranscriptFile(harness.home, run.stem);
  }

  async function expectListed(run: Run, status: string, error: string | undefined): Promise<void> {
    const { runs } = await listRuns(harness.home);
    expect(runs.find(({ runId }) => runId === run.runId)?.meta).toMatchObject({ status, error });
  }

  /** What the doctor has to say of it. */
  async function told(run: Run): Promise<string> {
    const found = await findDisagreements({ home: harness.home, queue: taskQueue(homeId(harness.home)) });
    return found.flatMap(({ what, problem }) => (what === run.runId ? [problem] : [])).join('\n');
  }

  async function pendingOf(run: Run) {
    return (await run.handle.describe()).raw.pendingActivities?.[0];
  }
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { awaitResult } from '../../src/client.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { readTranscript } from '../../src/store/read.ts';
import { rootTranscriptFile } from '../../src/store/layout.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { fill, makeRoom, mountSmallDisk, remount, smallDiskProblem, unmount } from '../helpers/small-disk.ts';
import { toldTrouble } from '../helpers/trouble.ts';
import { waitFor } from '../helpers/wait.ts';

const problem = smallDiskProblem();

const steps = [
  hold('disk'),
  { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] },
  { calls: [{ name: 'edit', input: { file_path: 'a.txt', old_string: 'one', new_string: 'one more' } }] },
  { calls: [{ name: 'bash', input: { command: 'echo x >> count.txt' } }] },
  { expect: { exitCode: 0 }, text: 'done' },
];

describe.skipIf(problem !== undefined)(`while errand’s disk is full (${problem ?? 'on a tmpfs'})`, () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0 });
    mountSmallDisk(harness.home);
    await harness.write('a.txt', 'one\n');
    await harness.startWorker();
  }, 60_000);

  afterEach(async () => {
    await Promise.all(harness.workers.map((worker) => worker.kill('SIGKILL')));
    unmount(harness.home);
    await harness.close();
  });

  it('promise 1: a run waits, says so, and goes on with nothing lost, doubled or paid twice', async () => {
    const run = await heldRun();
    fill(harness.home);
    await release(harness, 'disk');
    expect(await waitingFor(run)).toMatch(/^store not available: disk full since \d\d:\d\d \(attempt \d+\)$/);
    makeRoom(harness.home);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    await expectOnce(run);
  }, 120_000);

  it('promise 3: nearly full, it is not asked for answers that it could not store', async () => {
    const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }], fault: { delayMs: 3_000 } };
    const run = await harness.run(toScriptPrompt([read, { text: 'done' }], 'nearly full'));
    await waitFor('the question to be sent', () => harness.simulator.ledger().length === 1);
    fill(harness.home, 256 * 1024);
    expect(await waitingFor(run)).toMatch(/^store not available: disk full since/);
    expect(harness.simulator.ledger()).toHaveLength(1);
    makeRoom(harness.home);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(harness.simulator.ledger()).toHaveLength(2);
  }, 120_000);

  it('read-only, it is waited for as well', async () => {
    const run = await heldRun();
    await release(harness, 'disk');
    await waitFor('the disk to be read-only', () => remount(harness.home, 'ro'));
    expect(await waitingFor(run)).toMatch(/^store not available: file system is read-only since/);
    remount(harness.home, 'rw');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    await expectOnce(run);
  }, 120_000);

  it('promise 6: past limits.outageMs the run fails, but only once its end can be written', async () => {
    const run = await heldRun(1_000);
    fill(harness.home);
    await release(harness, 'disk');
    await waitFor('the agent to be closing', async () => {
      const { raw } = await run.handle.describe();
      return raw.pendingActivities?.some(({ activityId, attempt }) => activityId === 'close' && (attempt ?? 0) > 2);
    });
    expect(await waitingFor(run)).toContain('store not available: disk full since');
    makeRoom(harness.home);
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending.status).toBe('failed');
    expect(ending.error).toMatch(/^Store\.Unavailable: gave up after \d s of trouble \(limits\.outageMs\): disk full/);
    // At the turn whose command it was: the next question would only have waited as long again.
    const end = { type: 'end', status: 'failed', turns: 1, error: ending.error };
    expect((await harness.records(run)).at(-1)).toMatchObject(end);
  }, 120_000);

  async function heldRun(outageMs?: number): Promise<Run> {
    const run = await harness.run(toScriptPrompt(steps, 'on a small disk'), outageMs === undefined ? {} : { outageMs });
    await whenHeld(harness, 'disk');
    return run;
  }

  function waitingFor(run: Run): Promise<string> {
    return toldTrouble(harness, run);
  }

  async function expectOnce(run: Run): Promise<void> {
    const asked = harness.simulator.ledger().map(({ turn }) => turn);
    expect(asked).toEqual([1, 2, 3, 4, 5]);
    expect(await readFile(join(harness.workspace, 'count.txt'), 'utf8')).toBe('x\n');
    expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('one more\n');
    const { records } = await readTranscript(rootTranscriptFile(harness.home, run.stem));
    expect(usageOf(records).unsettled).toEqual([]);
    expect(records.filter(({ type }) => type === 'end')).toHaveLength(1);
  }
});

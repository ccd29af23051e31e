import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { steer } from '../../src/client.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { rootTranscriptFile } from '../../src/store/layout.ts';
import { commandLine, type Ended } from '../helpers/command-line.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';

describe('a run that no worker has taken yet', () => {
  let harness: Harness;
  let run: Run;

  beforeAll(async () => {
    harness = await createHarness({ workers: 0 });
    run = await harness.run(toScriptPrompt([{ text: 'done' }, { text: 'done' }, { text: 'done' }], 'early'));
  }, 90_000);

  afterAll(async () => {
    await errand(['down']);
    await harness.close();
  });

  it('is told by ps, show and logs to wait for a worker', async () => {
    const ps = await errand(['ps']);
    expect(ps.err).toContain(run.runId);
    expect(ps.err).toContain('waits for a worker');
    const show = await errand(['show', run.runId]);
    expect(show.out).toContain(`${run.runId} · running · since `);
    expect(show.out).toContain('no worker has taken it yet');
    const { out } = await errand(['show', run.runId, '--json']);
    expect(JSON.parse(out)).toMatchObject({ runId: run.runId, status: 'running', turns: 0, agents: [] });
    const logs = await errand(['logs', run.runId]);
    expect(logs).toMatchObject({ code: 0, err: expect.stringContaining('no worker has taken it yet') as string });
    expect(await errand(['show', 'no-such-run'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('No run "no-such-run"') as string,
    });
  }, 90_000);

  it('does not hear a message while no worker comes: the sender is told so, and told what to do', async () => {
    const outcome = await steer(harness.client, run.runId, 'nobody hears this yet');
    expect(outcome).toMatchObject({
      done: false,
      reason: expect.stringContaining('errand up starts workers') as string,
    });
  }, 90_000);

  it('promise 1: is steered by a command that starts what is missing, and the model reads it', async () => {
    const told = await errand(['steer', run.runId, 'look to the left']);
    expect(told).toMatchObject({ code: 0, out: `${run.runId} reads it at its next turn\n` });
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(JSON.stringify(harness.simulator.ledger())).toContain('look to the left');
  }, 120_000);

  function errand(args: readonly string[]): Promise<Ended> {
    return commandLine(args, harness.environment, process.cwd());
  }
});

describe('a run whose worker died right after it had made its file', () => {
  it('is followed to its end all the same', async () => {
    const harness = await createHarness({ workers: 0 });
    const errand = (...args: string[]) => commandLine(args, harness.environment, process.cwd());
    try {
      const run = await harness.run(toScriptPrompt([{ text: 'done' }], 'empty'));
      await writeFile(rootTranscriptFile(harness.home, run.stem), '', { mode: 0o600 });
      expect(await errand('watch', run.runId)).toMatchObject({ code: 0 });
    } finally {
      await errand('down');
      await harness.close();
    }
  }, 120_000);
});

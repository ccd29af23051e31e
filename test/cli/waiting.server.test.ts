import { afterEach, describe, expect, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { commandLine } from '../helpers/command-line.ts';
import { createHarness, type Harness } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { waitFor } from '../helpers/wait.ts';

let harness: Harness;
afterEach(() => harness.close());

async function errand(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<string> {
  const { out, err } = await commandLine(args, { ...harness.environment, ...more }, harness.workspace);
  return out + err;
}

describe('a run that does not move', () => {
  it('ps and show say what it waits for, a sub-agent its own reason, and --json has it beside the status', async () => {
    harness = await createHarness();
    const child = toScriptPrompt([hold('child'), { text: 'found' }], 'child');
    const task = { name: 'task', input: { description: 'look for the cause', prompt: child } };
    const run = await harness.run(toScriptPrompt([{ calls: [task] }, { text: 'done' }], 'parent'));
    await whenHeld(harness, 'child');
    expect(await errand(['ps'])).toMatch(new RegExp(`${run.runId} +running`));
    expect(await errand(['show', run.runId])).not.toMatch(/waiting/);
    await harness.simulator.close();
    await release(harness, 'child');
    const listed = await waitFor('ps to say what the run waits for', async () => {
      const out = await errand(['ps']);
      return out.includes('waiting:') && out;
    });
    expect(listed).toMatch(
      new RegExp(
        `${run.runId} +waiting .*\\n {2}waiting: model not reachable since \\d\\d:\\d\\d \\(attempt \\d+\\)\\n`,
      ),
    );
    const shown = await errand(['show', run.runId]);
    expect(shown).toMatch(/\(root\) · running\n/);
    expect(shown).toMatch(/look for the cause .* · waiting\n.*\n +waiting: model not reachable since/);
    const json = JSON.parse(await errand(['show', run.runId, '--json'])) as Record<string, unknown>;
    expect(json).toMatchObject({
      status: 'running',
      agents: [{ status: 'running', waitingFor: expect.stringMatching(/^model not reachable/) }],
    });
    expect(JSON.parse(await errand(['ps', '--json']))).toMatchObject({
      status: 'running',
      waitingFor: expect.stringMatching(/^model not reachable/),
    });
  }, 120_000);

  it('ps and show say it when no worker of the home is there', async () => {
    harness = await createHarness();
    const run = await harness.run(toScriptPrompt([hold('alone'), { text: 'done' }], 'alone'));
    await whenHeld(harness, 'alone');
    await harness.workers[0]?.kill();
    await release(harness, 'alone');
    for (const command of [['ps'], ['show', run.runId]]) {
      await waitFor(`${command[0]} to miss the worker`, async () =>
        /waiting: (no word from the worker of \w+|no worker has taken)/.test(await errand(command)),
      );
    }
  }, 90_000);

  it('the listing comes without a server that answers, in about a second, and says so', async () => {
    harness = await createHarness();
    const run = await harness.run(toScriptPrompt([hold('away'), { text: 'done' }], 'away'));
    await whenHeld(harness, 'away');
    const away = { TEMPORAL_ADDRESS: '127.0.0.1:9' };
    const words = /waiting: the Temporal server at 127\.0\.0\.1:9 does not answer \(last step \d\d:\d\d\)/;
    expect(await errand(['ps'], away)).toMatch(words);
    expect(await errand(['show', run.runId], away)).toMatch(words);
    expect(JSON.parse(await errand(['ps', '--json'], away))).toMatchObject({ status: 'running' });
  }, 90_000);
});

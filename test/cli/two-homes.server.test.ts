import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { homeId } from '../../src/home.ts';
import { taskQueue } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { commandLine, type Ended } from '../helpers/command-line.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

const UNTIL_TOLD = { calls: [{ name: 'bash', input: { command: 'until [ -e go ]; do sleep 0.1; done' } }] };

describe('a run of another home on the same Temporal server', () => {
  let mine: Harness;
  let theirs: Harness;
  let run: Run;

  beforeAll(async () => {
    mine = await createHarness({ workers: 1 });
    theirs = await createHarness({ workers: 0 });
    run = await mine.run(toScriptPrompt([UNTIL_TOLD, { text: 'undisturbed' }], 'theirs'));
    await waitFor('the run to be in its first call', () => mine.processesIn('until [ -e go').length > 0);
    expect(await errand(['run', '[[scenario:hello]] hi'])).toMatchObject({ code: 0 });
  }, 120_000);

  afterAll(async () => {
    await errand(['down']);
    await Promise.all([mine.close(), theirs.close()]);
  }, 60_000);

  it('is not listed, and nothing is said of it by doctor', async () => {
    for (const args of [['ps'], ['ps', '--json'], ['doctor']]) {
      const { out, err } = await errand(args);
      expect(out + err).not.toContain(run.runId);
    }
  }, 60_000);

  it.each([
    ['show', []],
    ['logs', []],
    ['watch', []],
    ['steer', ['stop that']],
    ['cancel', []],
  ])(
    'is neither told nor touched by %s, which says whose it is',
    async (command, more) => {
      const { code, out, err } = await errand([command, run.runId, ...more]);
      expect(err).toContain(`${run.runId} is on this Temporal server, but not of this home (${theirs.home})`);
      expect(err).toContain(taskQueue(homeId(mine.home)));
      expect({ code, out }).toEqual({ code: 2, out: '' });
    },
    60_000,
  );

  it('promise 5: ends by its own home’s commands alone', async () => {
    await mine.write('go', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'undisturbed' });
    expect(JSON.stringify(mine.simulator.ledger())).not.toContain('stop that');
  }, 60_000);

  function errand(args: readonly string[]): Promise<Ended> {
    return commandLine(args, theirs.environment, theirs.workspace);
  }
});

it('a workflow that is not errand’s is not cancelled', async () => {
  const harness = await createHarness({ workers: 0 });
  const workflowId = `payments-${process.pid}`;
  const handle = await harness.client.workflow.start('anything', { workflowId, taskQueue: 'payments' });
  const errand = (...args: string[]) => commandLine(args, harness.environment, harness.workspace);
  try {
    const { code, err } = await errand('cancel', workflowId);
    expect(err).toContain(`${workflowId} is on this Temporal server, but not of this home`);
    expect(code).toBe(2);
    const { events } = await handle.fetchHistory();
    expect(events?.some((event) => event.workflowExecutionCancelRequestedEventAttributes)).toBe(false);
  } finally {
    await handle.terminate();
    await errand('down');
    await harness.close();
  }
}, 90_000);

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };

/** Silent for ever after the stream has begun. */
const silent = toScriptPrompt([read, { text: 'never said', fault: { silence: 'message_start' } }], 'silent one');

/** A command that would run for ten minutes, in a grandchild. */
const sleeper = toScriptPrompt(
  [{ calls: [{ name: 'bash', input: { command: 'echo begun; sleep 600', timeout_ms: 900_000 } }] }],
  'sleeper',
);
const aboveSleeper = toScriptPrompt(
  [{ calls: [{ name: 'task', input: { description: 'sleeps for ten minutes', prompt: sleeper } }] }],
  'above sleeper',
);

/** Continues as new again and again. */
const search = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }], fault: { delayMs: 50 } };
const endless = toScriptPrompt([{ ...search, repeat: 300 }], 'endless');

const tree = toScriptPrompt(
  [
    {
      calls: [
        { name: 'task', input: { description: 'waits for a silent model', prompt: silent } },
        { name: 'task', input: { description: 'delegates a long command', prompt: aboveSleeper } },
        { name: 'task', input: { description: 'continues as new again', prompt: endless } },
      ],
    },
  ],
  'a tree of depth three',
);

describe('promise 5: a stop stops everything', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 2 });
    await harness.write('a.txt', 'alpha\n');
  }, 60_000);

  afterEach(() => harness.close());

  it('at every level, in seconds', async () => {
    const run = await startTree(harness);
    await run.handle.cancel();
    await expectAllCancelled(harness, run);
  }, 120_000);

  it('also with a worker that died a moment before', async () => {
    const run = await startTree(harness);
    await harness.workers[0]?.kill('SIGKILL');
    await run.handle.cancel();
    await expectAllCancelled(harness, run);
  }, 120_000);
});

/** Waits until every branch is where it should be when the cancel comes. */
async function startTree(harness: Harness): Promise<Run> {
  const run = await harness.run(tree, { historyEvents: 40, maxTurns: 500 });
  await waitFor('the command to run', () => harness.processesIn('sleep 600').length > 0);
  await waitFor('the silent call to be open', () =>
    harness.simulator
      .ledger()
      .some(
        ({ outcome, turn, messages }) =>
          outcome === 'open' && turn === 2 && JSON.stringify(messages).includes('silent'),
      ),
  );
  await waitFor(
    'a child to have continued as new twice',
    async () => {
      const { agents } = await listAgents(harness.home, run.stem);
      const child = agents.find(({ description }) => description === 'continues as new again');
      if (!child) return false;
      const owners = (await harness.records(run, child.agentId)).filter(
        (record) => record.type === 'event' && record.name === 'owner',
      );
      return owners.length >= 2;
    },
    60_000,
  );
  return run;
}

async function expectAllCancelled(harness: Harness, run: Run): Promise<void> {
  const error: unknown = await run.result().catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(WorkflowFailedError);
  expect((error as WorkflowFailedError).cause).toBeInstanceOf(CancelledFailure);
  const asked = harness.simulator.ledger().length;
  const { agents } = await listAgents(harness.home, run.stem);
  expect(agents.map(({ status }) => status)).toEqual(Array(5).fill('cancelled'));
  for (const { workflowId } of agents) {
    const { status } = await harness.client.workflow.getHandle(workflowId).describe();
    expect(status.name).toBe('CANCELLED');
  }
  expect(harness.processesIn('sleep 600')).toEqual([]);
  for (const { agentId } of agents) {
    const ends = (await harness.records(run, agentId)).filter(({ type }) => type === 'end');
    expect(ends).toMatchObject([{ status: 'cancelled' }]);
  }
  expect(harness.simulator.ledger()).toHaveLength(asked);
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { describePending } from '../../src/client.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

const harnesses: Harness[] = [];

afterEach(() => Promise.all(harnesses.splice(0).map((harness) => harness.close())));

it('promise 2: of two homes on one server, none takes the other’s runs', async () => {
  const mine = await createHarness({ workers: 0 });
  const theirs = await createHarness({ workers: 1 });
  harnesses.push(mine, theirs);
  const touch = toScriptPrompt([{ calls: [{ name: 'bash', input: { command: 'touch was-here' } }] }, { text: 'done' }]);
  const run = await mine.run(touch);
  expect(await (await theirs.run(touch)).result()).toMatchObject({ status: 'completed' });
  const words = await waitFor('nobody to take the run', () => describePending(mine.client, run.runId, new Date()));
  expect(words).toMatch(/^no worker has taken the next step since/);
  expect(await mine.records(run)).toEqual([]);
  expect(mine.simulator.ledger()).toEqual([]);
  expect(existsSync(join(mine.workspace, 'was-here'))).toBe(false);
  await mine.startWorker();
  expect(await run.result()).toMatchObject({ status: 'completed' });
  expect(mine.simulator.ledger()).toHaveLength(2);
  expect(theirs.simulator.ledger()).toHaveLength(2);
}, 90_000);

it('a run id that another home uses is refused, and the run there goes on', async () => {
  const mine = await createHarness({ workers: 1 });
  const theirs = await createHarness({ workers: 1 });
  harnesses.push(mine, theirs);
  const slow = toScriptPrompt([{ text: 'mine', fault: { delayMs: 2_000 } }]);
  const id = `shared-${process.pid}`;
  const run = await mine.run(slow, { id });
  await expect(theirs.run(slow, { id })).rejects.toThrow(/There is a run shared-\d+ already/);
  expect(await run.result()).toMatchObject({ status: 'completed', preview: 'mine' });
  expect(theirs.simulator.ledger()).toEqual([]);
}, 90_000);

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { STEER_UPDATE } from '../../src/protocol.ts';
import type { SteeringMessage } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness } from '../helpers/harness.ts';

describe('a steering message', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0 });
  }, 60_000);

  afterEach(() => harness.close());

  it('promise 1: that comes in before the first question is in it', async () => {
    const run = await harness.run(toScriptPrompt([{ text: 'done' }], 'steered at once'));
    const args: [SteeringMessage] = [{ id: 'm1', text: 'look to the left' }];
    const taken = run.handle.executeUpdate<string, [SteeringMessage]>(STEER_UPDATE, { args, updateId: 'm1' });
    await harness.startWorker();
    await taken;
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(JSON.stringify(harness.simulator.ledger()[0]?.messages)).toContain('look to the left');
  }, 90_000);
});

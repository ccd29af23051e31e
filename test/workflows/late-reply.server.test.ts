import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

describe('a worker that slept over the answer of the model', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness();
  }, 90_000);

  afterEach(() => harness.close());

  it('promise 3: the attempt that takes over in the same process uses the reply that the first one got', async () => {
    const steps = [{ text: 'paid for once', fault: { delayMs: 3_000, times: 1 } }];
    const run = await harness.run(toScriptPrompt(steps, 'late reply'));
    const [worker] = harness.workers;
    await waitFor('the question to be sent', () => harness.simulator.ledger().length === 1);
    worker?.process.kill('SIGSTOP');
    await waitFor('the answer to be given', () => harness.simulator.ledger()[0]?.outcome === 'complete');
    await waitFor('the server to give the attempt up', async () => (await attemptOf()) > 1, 60_000);
    worker?.process.kill('SIGCONT');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'paid for once' });
    expect(harness.simulator.ledger()).toHaveLength(1);
    const records = await harness.records(run);
    expect(records.filter(({ type }) => type === 'attempt')).toHaveLength(1);
    expect(usageOf(records).unsettled).toEqual([]);
    const served = harness.simulator.ledger().reduce((sum, { usage }) => sum + usage.output_tokens, 0);
    expect(usageOf(records).own).toMatchObject({ requests: 1, outputTokens: served });
    expect(records.at(-1)).toMatchObject({ type: 'end', usage: { own: usageOf(records).own } });

    async function attemptOf(): Promise<number> {
      return (await run.handle.describe()).raw.pendingActivities?.[0]?.attempt ?? 0;
    }
  }, 120_000);
});

import { afterEach, describe, expect, it } from 'vitest';
import { awaitResult, describePending } from '../../src/client.ts';
import { startSimulator, toScriptPrompt } from '../../src/simulator/index.ts';
import type { Simulator } from '../../src/simulator/index.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { waitFor } from '../helpers/wait.ts';

describe('while the model server is away', () => {
  let harness: Harness;
  let back: Simulator | undefined;

  afterEach(async () => {
    await harness.close();
    await back?.close();
    back = undefined;
  });

  it('promise 7: a run waits, says for what and since when, and goes on without paying for the outage', async () => {
    harness = await createHarness();
    const run = await harness.run(toScriptPrompt([hold('model'), { text: 'after all' }], 'waits'));
    await whenHeld(harness, 'model');
    const { port } = harness.simulator;
    await harness.simulator.close();
    await release(harness, 'model');
    const words = await waitFor('the third attempt to be told of', async () => {
      const text = await describePending(harness.client, run.runId, new Date(0));
      return text?.includes('attempt 3') && text;
    });
    const failedAt = (await harness.records(run)).find((record) => record.type === 'usage' && !isComplete(record))?.at;
    const clock = new Date(failedAt ?? '').toTimeString().slice(0, 5);
    expect(words).toBe(`model not reachable since ${clock} (attempt 3)`);
    back = await startSimulator({ port });
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'after all' });
    expect(back.ledger()).toHaveLength(1);
    expect(usageOf(await harness.records(run))).toMatchObject({
      unsettled: [],
      // One at the first server, one at the second; the attempts that reached nobody are none.
      own: { requests: 2, outputTokens: expect.any(Number) },
    });
  }, 90_000);

  it('a run that has waited for limits.outageMs fails and says so', async () => {
    harness = await createHarness();
    const run = await harness.run(toScriptPrompt([hold('limit'), { text: 'never' }], 'gives up'), { outageMs: 2_000 });
    await whenHeld(harness, 'limit');
    await harness.simulator.close();
    await release(harness, 'limit');
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending.status).toBe('failed');
    expect(ending.error).toMatch(
      /^Model\.Unreachable: gave up after [2-9] s of trouble \(limits\.outageMs\): cannot reach the model server at http:/,
    );
    expect((await harness.records(run)).at(-1)).toMatchObject({ type: 'end', status: 'failed', error: ending.error });
  }, 90_000);

  it('a key that cannot be used fails the run at once, and says what to do', async () => {
    harness = await createHarness({ env: { ANTHROPIC_API_KEY: 'ключ' } });
    const run = await harness.run(toScriptPrompt([{ text: 'never' }], 'no key'));
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending.status).toBe('failed');
    expect(ending.error).toMatch(/^Model\.Auth: The API key has characters .* Set ANTHROPIC_API_KEY/);
    expect(harness.simulator.ledger()).toEqual([]);
  }, 60_000);
});

function isComplete({ outcome }: { readonly outcome: string }): boolean {
  return outcome === 'complete';
}

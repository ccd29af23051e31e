import { afterEach, describe, expect, it } from 'vitest';
import { awaitResult, describePending } from '../../src/client.ts';
import type { AgentInput } from '../../src/protocol.ts';
import { startSimulator, toScriptPrompt } from '../../src/simulator/index.ts';
import type { Simulator } from '../../src/simulator/index.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { waitFor } from '../helpers/wait.ts';

describe('workers of another model server', () => {
  let harness: Harness;
  let other: Simulator | undefined;

  afterEach(async () => {
    await harness.close();
    await other?.close();
    other = undefined;
  });

  async function swapWorkers(ANTHROPIC_BASE_URL: string): Promise<void> {
    await Promise.all(harness.workers.map((worker) => worker.kill()));
    await harness.startWorker({ ANTHROPIC_BASE_URL });
  }

  function waitingWords(run: Run, attempt: number): Promise<string> {
    return waitFor(
      `attempt ${attempt} to be told of`,
      async () => {
        const words = await describePending(harness.client, run.runId, new Date(0));
        return words?.includes(`(attempt ${attempt})`) && words;
      },
      60_000,
    );
  }

  it('promise 3: are not asked for a run: it waits, says why, and goes on with workers of its own', async () => {
    harness = await createHarness();
    other = await startSimulator();
    const run = await harness.run(toScriptPrompt([hold('swap'), { text: 'mine' }], 'swapped'));
    await whenHeld(harness, 'swap');
    await swapWorkers(other.url);
    await release(harness, 'swap');
    const words = await waitingWords(run, 3);
    const [mine, theirs] = [harness.simulator.url, other.url];
    expect(words.replace(/since \d\d:\d\d/, 'since 02:13')).toBe(
      `this run's model server is ${mine}, the workers use ${theirs} since 02:13; ` +
        'run "errand up" from a shell with its settings (attempt 3)',
    );
    expect(other.ledger()).toEqual([]);
    expect((await harness.records(run)).filter(({ type }) => type === 'attempt' || type === 'usage')).toHaveLength(2);
    await swapWorkers(mine);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'mine' });
    expect(harness.simulator.ledger()).toHaveLength(2);
    expect(other.ledger()).toEqual([]);
  }, 120_000);

  it('are waited out as long as an outage, then the run fails and says why', async () => {
    harness = await createHarness();
    const elsewhere = { modelServer: 'https://model.example/v1', outageMs: 1_500 };
    const run = await harness.run(toScriptPrompt([{ text: 'never' }], 'gives up'), elsewhere);
    const { status, error } = await awaitResult(harness.client, run.runId);
    expect(status).toBe('failed');
    expect(error).toMatch(
      /^Model\.OtherServer: gave up after \d+ s .*this run's model server is https:\/\/model\.example\/v1/,
    );
    expect(harness.simulator.ledger()).toEqual([]);
  }, 60_000);

  it('that were given no server at all are no server of any run', async () => {
    harness = await createHarness({ env: { ANTHROPIC_API_KEY: undefined, ANTHROPIC_BASE_URL: undefined } });
    const run = await harness.run(toScriptPrompt([{ text: 'never' }], 'keyless'), {
      modelServer: 'https://api.anthropic.com',
    });
    expect(await waitingWords(run, 2)).toMatch(/is https:\/\/api\.anthropic\.com, the workers use none since/);
    await run.handle.cancel();
    expect((await awaitResult(harness.client, run.runId)).status).toBe('cancelled');
  }, 60_000);

  it('do the work of a run of an older build, which names no server', async () => {
    harness = await createHarness();
    const prompt = toScriptPrompt([{ text: 'as ever' }], 'older');
    const run = await harness.run(prompt, { modelServer: null });
    expect(await run.result()).toMatchObject({ status: 'completed' });
    expect(Object.keys((await inputsOf(harness))[0] ?? {})).not.toContain('modelServer');
  }, 60_000);

  it('are known to children, and to all that comes after a continue-as-new', async () => {
    harness = await createHarness();
    const child = toScriptPrompt([{ text: 'below' }], 'child');
    const look = { calls: [{ name: 'glob', input: { pattern: '*{{turn}}' } }], repeat: 6 };
    const spawn = { calls: [{ name: 'task', input: { description: 'say a word', prompt: child } }] };
    const run = await harness.run(toScriptPrompt([look, spawn, { text: 'done' }], 'tree'), { historyEvents: 20 });
    expect(await run.result()).toMatchObject({ status: 'completed' });
    const inputs = await inputsOf(harness);
    expect(inputs.some(({ carried }) => carried)).toBe(true);
    expect(inputs.some(({ depth }) => depth === 1)).toBe(true);
    expect(new Set(inputs.map(({ modelServer }) => modelServer))).toEqual(new Set([harness.simulator.url]));
    const metas = (await harness.allRecords(run)).filter((record) => record.type === 'session_meta');
    expect(metas.map(({ modelServer }) => modelServer)).toEqual([harness.simulator.url, harness.simulator.url]);
  }, 60_000);
});

/** What every run of every agent was started with. */
async function inputsOf(harness: Harness): Promise<readonly AgentInput[]> {
  const histories = await harness.histories();
  return histories.map(({ history }) => startedInput(history));
}

function startedInput(history: unknown): AgentInput {
  const { events } = history as { events: readonly { workflowExecutionStartedEventAttributes?: Started }[] };
  const [payload] = events[0]?.workflowExecutionStartedEventAttributes?.input.payloads ?? [];
  return JSON.parse(Buffer.from(payload?.data ?? '', 'base64').toString('utf8')) as AgentInput;
}

interface Started {
  readonly input: { readonly payloads: readonly { readonly data: string }[] };
}

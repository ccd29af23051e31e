import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WorkflowFailedError } from '@temporalio/client';
import { awaitResult, steer } from '../../src/client.ts';
import { toMarker, toScriptPrompt } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

const search = { text: 'still searching', calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }] };

describe('the endings of an agent', () => {
  let harness: Harness;

  beforeAll(async () => {
    harness = await createHarness({ workers: 1 });
    await harness.write('a.txt', 'alpha\n');
  }, 60_000);

  afterAll(() => harness.close());

  it('max_turns, after one last turn of text', async () => {
    const run = await harness.run(toScriptPrompt([{ ...search, repeat: 4 }], 'too long'), { maxTurns: 3 });
    expect(await run.result()).toMatchObject({ status: 'max_turns', turns: 4, preview: 'still searching' });
  });

  it('timeout, after stopping what runs and one last turn of text', async () => {
    const command = { calls: [{ name: 'bash', input: { command: 'sleep 300' } }] };
    const run = await harness.run(toScriptPrompt([command, { text: 'that is what I have' }], 'too slow'), {
      timeoutMs: 3_000,
    });
    expect(await run.result()).toMatchObject({ status: 'timeout', preview: 'that is what I have' });
  });

  it('failed (repeated_call) for a call that goes round in circles', async () => {
    const same = { text: 'again', calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
    const run = await harness.run(toScriptPrompt([{ ...same, repeat: 20 }], 'in circles'));
    const ending = await awaitResult(harness.client, run.runId);
    expect(ending).toMatchObject({ status: 'failed', error: 'repeated_call', result: { turns: 7 } });
  });

  it('failed with the cause for a request that the model server refuses', async () => {
    const run = await harness.run(toScriptPrompt([{ text: 'x', fault: { status: 403 } }], 'not allowed'));
    const error: unknown = await run.result().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(WorkflowFailedError);
    expect(await awaitResult(harness.client, run.runId)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Model.Permission') as string,
    });
  });

  it.each([
    ['refusal', 'refused'],
    ['stop_sequence', 'completed'],
    ['never_heard_of_it', 'failed'],
  ])('stop reason %s ends as %s', async (reason, status) => {
    const run = await harness.run(toScriptPrompt([{ text: 'so be it', stopReason: reason }], reason));
    expect(await awaitResult(harness.client, run.runId)).toMatchObject({ status });
  });

  it.each(['pause_turn', 'max_tokens'])('stop reason %s is continued', async (reason) => {
    const run = await harness.run(
      toScriptPrompt([{ text: 'half ', stopReason: reason }, { text: 'and half' }], reason),
    );
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 2 });
  });

  it('a tool call that was cut at the output limit is never run', async () => {
    const write = { name: 'write', input: { file_path: 'cut.txt', content: 'x' } };
    const steps = [
      { calls: [write], stopReason: 'max_tokens' },
      { expect: { isError: true, includes: 'cut' }, text: 'done' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'cut call'));
    expect(await run.result()).toMatchObject({ status: 'completed' });
    await expect(harness.write('cut.txt', '')).resolves.toBeTruthy();
  });

  it.each([429, 500, 529])('status %i is waited out and paid once', async (status) => {
    const fault = { status, retryAfter: 1, times: 1 };
    const run = await harness.run(toScriptPrompt([{ text: 'after all', fault }], `waited out ${status}`));
    expect(await run.result()).toMatchObject({ status: 'completed', usage: { own: { requests: 2 } } });
  });

  it('a stream that is cut is asked again, and no tool of it is run', async () => {
    const call = {
      calls: [{ name: 'bash', input: { command: 'echo x >> cut-count.txt' } }],
      fault: { cut: 'block_stop' as const, times: 1 },
    };
    const check = { calls: [{ name: 'bash', input: { command: 'wc -l < cut-count.txt' } }] };
    const run = await harness.run(
      toScriptPrompt([call, check, { expect: { matches: '^1' }, text: 'once' }], 'cut stream'),
    );
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'once' });
  });

  it('steering is seen at the next turn, once, and taken up to the last reply', async () => {
    const steps = [{ text: 'a', calls: [{ name: 'bash', input: { command: 'sleep 2' } }] }, { text: 'heard' }];
    const run = await harness.run(toScriptPrompt(steps, 'steered'));
    await waitFor('the first reply', async () =>
      (await harness.records(run)).some((record) => record.type === 'message' && record.role === 'assistant'),
    );
    await steer(harness.client, run.runId, 'please hurry');
    await run.result();
    const texts = (await harness.records(run)).flatMap((record) =>
      record.type === 'message' && record.role === 'user' ? record.content : [],
    );
    expect(texts.filter(({ text }) => text === 'please hurry')).toHaveLength(1);
  });

  it('the thirty-third turn has as much history as the third', async () => {
    const run = await harness.run(toScriptPrompt([{ ...search, repeat: 40 }, { text: 'done' }], 'long one'));
    await run.result();
    const { historyLength } = await run.handle.describe();
    expect(historyLength).toBeLessThanOrEqual(41 * 13 + 15);
  });
});

describe('depth', () => {
  let harness: Harness;

  beforeAll(async () => {
    harness = await createHarness({ workers: 1 });
  }, 60_000);

  afterAll(() => harness.close());

  it('promise 4: a forged task call at hops 0 is refused and starts nothing', async () => {
    const task = { calls: [{ name: 'task', input: { description: 'one too many', prompt: 'hello' } }] };
    const run = await harness.run(
      toScriptPrompt([task, { expect: { isError: true, includes: 'no tool' }, text: 'alone' }], 'forged'),
      { hops: 0 },
    );
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'alone' });
    expect((await listAgents(harness.home, run.stem)).agents).toHaveLength(1);
  });

  it('promise 4: the tools at the limit are those above it without task', async () => {
    const leaf = toScriptPrompt([{ text: 'leaf' }], 'leaf');
    const prompt = toScriptPrompt(
      [{ calls: [{ name: 'task', input: { description: 'at the limit', prompt: leaf } }] }, { text: 'root' }],
      'root',
    );
    const run = await harness.run(prompt, { hops: 1 });
    await run.result();
    const { agents } = await listAgents(harness.home, run.stem);
    const offered = await Promise.all(agents.map(({ agentId }) => toolsOf(harness, run, agentId)));
    const [root, child] = offered;
    expect(root).toContain('task');
    expect(child).toEqual(root?.filter((name) => name !== 'task'));
  });

  it('a runaway model starts no more agents than the run has places for', async () => {
    const capped = await createHarness({ config: 'caps: {total: 5, perTurn: 3}' });
    try {
      const run = await capped.run(`${toMarker('runaway')} run away`, { hops: 3, maxTurns: 3 });
      expect(await run.result()).toMatchObject({ status: 'max_turns' });
      expect((await listAgents(capped.home, run.stem)).agents).toHaveLength(1 + 5);
    } finally {
      await capped.close();
    }
  }, 60_000);
});

async function toolsOf(harness: Harness, run: { runId: string; stem: string }, agentId: string): Promise<string[]> {
  const [first] = await harness.records(run, agentId);
  if (first?.type !== 'session_meta') throw new Error('no session_meta');
  const { getObject } = await import('../../src/store/objects.ts');
  const schemas = JSON.parse((await getObject(harness.home, run.stem, first.objects.toolSchemas)).toString()) as {
    name: string;
  }[];
  return schemas.map(({ name }) => name);
}

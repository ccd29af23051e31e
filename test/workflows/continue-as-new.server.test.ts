import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { awaitResult, queryStatus, steer } from '../../src/client.ts';
import { STEER_UPDATE, workflowId } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import type { InlineStep } from '../../src/simulator/index.ts';
import { ownerOf } from '../../src/store/owner.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

/** Below the events of four turns: a run continues as new every third turn or so. */
const HISTORY_EVENTS = 40;

const search: InlineStep = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }] };
const slowSearch: InlineStep = { ...search, fault: { delayMs: 60 } };
const plan = { content: 'search all of it', status: 'in_progress' };

let harness: Harness;

beforeAll(async () => {
  harness = await createHarness({ workers: 2 });
  await harness.write('a.txt', 'alpha\n');
}, 60_000);

afterAll(() => harness.close(), 60_000);

describe('a run that continues as new again and again', () => {
  it('promise 8: has small histories, and carries turns, bill and todo list', async () => {
    const note = { calls: [{ name: 'todo_write', input: { todos: [plan] } }] };
    const hold = { calls: [{ name: 'bash', input: { command: 'sleep 2' } }] };
    const steps = [note, { ...search, repeat: 24 }, hold, { text: 'done' }];
    const run = await harness.run(toScriptPrompt(steps, 'carried on'), { historyEvents: HISTORY_EVENTS });
    const state = await waitFor('turn 26', async () => {
      const now = await queryStatus(harness.client, run.runId);
      return now.turn === 26 && now.lastStep.includes('sleep') && now;
    });
    expect(state.todos).toMatchObject([{ content: 'search all of it' }]);
    const result = await run.result();
    expect(result).toMatchObject({ status: 'completed', turns: 27, preview: 'done', usage: { own: { requests: 27 } } });
    const { usage } = await queryStatus(harness.client, run.runId);
    expect(usage).toEqual(result.usage.own);
    const lengths = await historyLengths(run);
    expect(lengths.length).toBeGreaterThan(6);
    expect(Math.max(...lengths)).toBeLessThan(HISTORY_EVENTS + 20);
  });

  it('promise 8: counts its turns over all of its runs', async () => {
    const prompt = toScriptPrompt([{ ...search, repeat: 30 }], 'too many turns');
    const run = await harness.run(prompt, { historyEvents: HISTORY_EVENTS, maxTurns: 20 });
    expect(await run.result()).toMatchObject({ status: 'max_turns', turns: 21 });
  });

  it('promise 8: has one wall clock, from the start of the first run', async () => {
    const prompt = toScriptPrompt([{ ...slowSearch, repeat: 500 }], 'too long');
    const startedAtMs = Date.now();
    const run = await harness.run(prompt, { historyEvents: 25, maxTurns: 400, timeoutMs: 12_000 });
    expect(await run.result()).toMatchObject({ status: 'timeout' });
    expect(Date.now() - startedAtMs).toBeGreaterThan(11_500);
    expect((await historyLengths(run)).length).toBeGreaterThan(3);
  });

  it('promise 8: hands the transcript on from run to run', async () => {
    const run = await harness.run(toScriptPrompt([{ ...search, repeat: 8 }, { text: 'x' }]), { historyEvents: 25 });
    await run.result();
    const { runId } = await run.handle.describe();
    const records = await harness.records(run);
    expect(ownerOf(records)).toBe(runId);
    expect(new Set(records.map(({ id }) => id.split(':').slice(1, 3).join(':')))).toEqual(new Set(['0:']));
  });
});

describe('what comes while a run continues as new', () => {
  it('promise 8: of many steering messages each is heard exactly once, or refused', async () => {
    const steps = [{ ...slowSearch, repeat: 40 }, { text: 'done' }];
    // Answers every message that comes with the last reply, until none does.
    const run = await harness.run(toScriptPrompt(steps, 'steered', { end: 'repeat' }), {
      historyEvents: 25,
      maxTurns: 400,
    });
    const sent = await Promise.all(Array.from({ length: 4 }, (_, writer) => keepSteering(run, writer)));
    expect(await run.result()).toMatchObject({ status: 'completed' });
    const taken = sent.flat();
    expect(taken.length).toBeGreaterThan(60);
    expect((await heard(run)).toSorted()).toEqual(taken.toSorted());
    expect((await historyLengths(run)).length).toBeGreaterThan(10);
  }, 90_000);

  it('promise 8: a message that a client sends again after it was heard is not heard twice', async () => {
    const run = await harness.run(toScriptPrompt([{ ...slowSearch, repeat: 20 }, { text: 'done' }], 'sent again'), {
      historyEvents: 25,
    });
    const message = { id: `again-${randomUUID()}`, text: 'only once' };
    const send = () => run.handle.executeUpdate<string, [typeof message]>(STEER_UPDATE, { args: [message] });
    await waitFor('the run to begin', async () => (await harness.records(run)).length > 3);
    await send();
    await waitFor('the message to be heard', async () => (await heard(run)).length > 0);
    const { runId: before } = await run.handle.describe();
    await waitFor('another run', async () => (await run.handle.describe()).runId !== before);
    expect(await send()).toBe('taken before');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 21 });
    expect(await heard(run)).toEqual(['only once']);
  });

  it.each([2, 3, 5, 8])('promise 5: a cancel at turn %i is not lost', async (turn) => {
    const prompt = toScriptPrompt([{ ...search, repeat: 500 }], `cancelled at ${turn}`);
    const run = await harness.run(prompt, { historyEvents: 20, maxTurns: 600 });
    await waitFor(`turn ${turn}`, async () =>
      (await harness.records(run)).some((record) => record.type === 'message' && record.turn >= turn),
    );
    await run.handle.cancel();
    expect(await awaitResult(harness.client, run.runId)).toMatchObject({ status: 'cancelled' });
  });

  it('promise 8: a message that comes with the last words is refused, not taken and lost', async () => {
    const steps = [search, { text: 'last words', fault: { delayMs: 2_500 } }];
    const run = await harness.run(toScriptPrompt(steps, 'last words'), { maxTurns: 1 });
    await waitFor('the last question', async () => (await queryStatus(harness.client, run.runId)).turn === 2);
    expect(await steer(harness.client, run.runId, 'too late')).toMatchObject({
      done: false,
      reason: expect.stringContaining('use errand continue') as string,
    });
    expect(await run.result()).toMatchObject({ status: 'max_turns' });
    expect(await heard(run)).toEqual([]);
  });
});

describe('a child that continues as new', () => {
  it('promise 8: gives its parent one result, and the parent does not continue as new while it runs', async () => {
    const child = toScriptPrompt([{ ...search, repeat: 14 }, { text: 'child is done' }], 'long child');
    const task = { name: 'task', input: { description: 'works for a while', prompt: child } };
    const steps = [
      { ...search, repeat: 2 },
      { calls: [task, { name: 'task', input: { description: 'works beside it', prompt: child } }] },
      { expect: { includes: 'child is done', isError: false }, ...search },
      { ...search, repeat: 3 },
      { text: 'all is done' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'above them'), { historyEvents: 20 });
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all is done', turns: 8 });
    const histories = await harness.histories();
    const own = histories.filter(({ name }) => name.startsWith(`${run.runId} `)).map(toEvents);
    expect(own.length).toBeGreaterThan(1);
    for (const events of own) expect(countOf(events, 'INITIATED')).toBe(countOf(events, 'COMPLETED'));
    const children = histories.filter(({ name }) => name.startsWith(workflowId(run.runId, '')));
    expect(children.length).toBeGreaterThan(6);
    expect(Math.max(...children.map((history) => toEvents(history).length))).toBeLessThan(40);
  });
});

/** Sends one message after the other while the run takes them; answers those it took. */
async function keepSteering(run: Run, writer: number): Promise<readonly string[]> {
  const taken: string[] = [];
  // As many as there are would keep the run from its end.
  for (let count = 0; count < 40; count++) {
    const text = `note ${writer}.${count}`;
    const outcome = await steer(harness.client, run.runId, text);
    if (!outcome.done) return taken;
    taken.push(text);
  }
  return taken;
}

/** The steering messages that the transcript holds as said. */
async function heard(run: Run): Promise<string[]> {
  const said = (await harness.records(run)).flatMap((record) =>
    record.type === 'message' && record.role === 'user' && record.steering ? record.content : [],
  );
  return said.filter(({ type }) => type === 'text').map(({ text }) => String(text));
}

async function historyLengths(run: Run): Promise<number[]> {
  const histories = await harness.histories();
  return histories.filter(({ name }) => name.startsWith(`${run.runId} `)).map((history) => toEvents(history).length);
}

interface Event {
  readonly eventType: string;
}

function toEvents({ history }: { readonly history: unknown }): readonly Event[] {
  return (history as { readonly events: readonly Event[] }).events;
}

function countOf(events: readonly Event[], what: 'INITIATED' | 'COMPLETED'): number {
  return events.filter(({ eventType }) => eventType.includes('CHILD_WORKFLOW') && eventType.endsWith(what)).length;
}

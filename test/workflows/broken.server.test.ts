import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Context } from '@temporalio/activity';
import { Client, Connection, WorkflowFailedError, WorkflowUpdateFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { AGENT_INPUT_VERSION, AGENT_WORKFLOW, NO_USAGE, STEER_UPDATE } from '../../src/protocol.ts';
import type { AgentInput, CallModelInput, CloseInput } from '../../src/protocol.ts';
import { BUILT_BUNDLE } from '../helpers/replay.ts';
import { waitFor } from '../helpers/wait.ts';
import { withWorkflowWorker } from '../helpers/workflow-worker.ts';
import type { WorkflowWorkerOptions } from '../helpers/workflow-worker.ts';

type Fakes = WorkflowWorkerOptions['activities'];

const REPLY = { next: 'end', text: 'done', usage: NO_USAGE };
const GOES_ON = { ...REPLY, next: 'continue' };
const CARRIED = {
  ...{ turn: 3, startedAtMs: Date.now(), branch: '', usage: NO_USAGE, todos: [], answers: [], steering: [] },
  ...{ children: 0, lastStep: 'x' },
};

let client: Client;

beforeAll(async () => {
  client = new Client({ connection: await Connection.connect({ address: inject('temporalAddress') }) });
});

afterAll(() => client.connection.close());

describe('promise 6: a failure in workflow code ends the run as failed, with its reason', () => {
  it.each([
    ['a reply that is none', { callModel: () => null }, {}, /null/],
    ['a reply without usage', { callModel: () => ({ next: 'end', text: '' }) }, {}, /undefined/],
    ['calls that are no list', { callModel: () => ({ ...REPLY, next: 'calls', calls: 7 }) }, {}, /iterable/],
    [
      'a todo list that is none',
      { callModel: () => ({ ...REPLY, next: 'calls', calls: [{ kind: 'plan', todos: 7 }] }) },
      {},
      /filter/,
    ],
    ['a carried todo list that is none', {}, { carried: { ...CARRIED, todos: 7 } }, /filter/],
    ['carried usage that is none', {}, { carried: { ...CARRIED, usage: { costUsd: 'much' } } }, /toFixed/],
    ['no limits', {}, { limits: undefined }, /maxTurns|timeoutMs/],
    ['no trace of an input', {}, undefined, /undefined|null/],
  ])('%s', async (_what, fakes, change, reason) => {
    const closed: CloseInput[] = [];
    const { error } = await runBroken({ ...fakes, closeAgent: (input) => closing(closed, input) }, change);
    expect(error).toBeInstanceOf(WorkflowFailedError);
    expect(String((error as WorkflowFailedError).cause?.message)).toMatch(reason);
    if (change === undefined) return;
    expect(closed).toMatchObject([{ status: 'failed', ref: { agentId: 'agent-1' } }]);
    expect(closed[0]?.error).toMatch(reason);
  });

  it('a bug before there is any state still gets its terminal record', async () => {
    const code = await changedBundle('.startedAtMs = ', '.startedAtMs = nowhereToBeFound ?? ');
    const closed: CloseInput[] = [];
    const { error } = await runBroken({ closeAgent: (input) => closing(closed, input) }, {}, code);
    expect((error as WorkflowFailedError).cause?.message).toContain('nowhereToBeFound');
    expect(closed).toMatchObject([{ status: 'failed', turn: 1, unopened: { agentId: 'agent-1' } }]);
  });

  it.each([
    ['while it opens', { openTranscript: () => never() }, 1],
    ['while the model is asked', { callModel: () => never() }, 1],
    ['in its second turn', { callModel: ({ turn }: CallModelInput) => (turn === 1 ? GOES_ON : never()) }, 2],
  ])(
    'a bug in a handler %s: the agent is closed once, with its reason, and the sender is told',
    async (_, fakes, turn) => {
      const code = await changedBundle(
        'takeSteering({ id, text }) {',
        'takeSteering({ id, text }) { nowhereToBeFound();',
      );
      const closed: CloseInput[] = [];
      const calls: string[] = [];
      const all: Fakes = { ...fakes, closeAgent: (input) => closing(closed, input) };
      const work = async (handle: WorkflowHandle) => {
        await waitFor('the agent to be at work', () => calls.at(-1) === Object.keys(fakes)[0] && calls.length >= turn);
        const error = await steer(handle, { id: 'a', text: 'b' }).catch((caught: unknown) => caught);
        return { error, failed: await handle.result().catch((caught: unknown) => caught) };
      };
      const { error, failed } = await withRun(all, {}, code, work, calls);
      expect((error as WorkflowUpdateFailedError).cause).toMatchObject({ type: 'Handler.Broken' });
      const cause = (failed as WorkflowFailedError).cause;
      expect(cause).toMatchObject({ type: 'Agent.Failed' });
      expect(cause?.message).toBe('a bug in errand: nowhereToBeFound is not defined');
      expect(closed).toMatchObject([{ status: 'failed', turn, error: cause?.message, ref: { agentId: 'agent-1' } }]);
    },
  );

  it.each([[undefined], [null], [7], ['text'], [{}], [{ id: 7, text: 'x' }], [{ id: 'x', text: ['y'] }]])(
    'the steering message %j is refused and the run goes on',
    async (message) => {
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const result = await withRun({ openTranscript: () => held }, {}, undefined, async (handle) => {
        await expect(steer(handle, message)).rejects.toBeInstanceOf(WorkflowUpdateFailedError);
        release();
        return handle.result();
      });
      expect(result).toMatchObject({ status: 'completed' });
    },
  );
});

describe('a history that does not fit the code', () => {
  it('promise 10: fails the task and not the run, which goes on with the right code', async () => {
    const taskQueue = `broken-${randomUUID()}`;
    const asked: unknown[] = [];
    const slow = { callModel: (input: unknown) => (asked.push(input), never()) };
    const first = fakesWith(slow);
    const handle = await withWorkflowWorker({ taskQueue, activities: first }, async () => {
      const started = await start(taskQueue, {});
      await waitFor('the model to be asked', () => asked.length > 0);
      return started;
    });
    const code = await changedBundle('.openTranscript.executeWithOptions', '.closeAgent.executeWithOptions');
    const woken = steer(handle, { id: 'wakes', text: 'it' }).catch(() => undefined);
    await withWorkflowWorker({ taskQueue, activities: fakesWith({}), code }, async () => {
      await waitFor('the task to fail', async () =>
        (await handle.fetchHistory()).events?.some((event) =>
          event.workflowTaskFailedEventAttributes?.failure?.message?.includes('TMPRL1100'),
        ),
      );
    });
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const result = await withWorkflowWorker({ taskQueue, activities: fakesWith({}) }, () => handle.result());
    expect(result).toMatchObject({ status: 'completed' });
    await woken;
  });
});

describe('a cancel that comes with the last activity before a continue-as-new', () => {
  it('promise 5: ends the run instead of being dropped with it', async () => {
    const taskQueue = `broken-${randomUUID()}`;
    let answer: (reply: unknown) => void = () => {};
    const reply = new Promise((resolve) => (answer = resolve));
    let asked = () => {};
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const fakes = { callModel: () => (asked(), reply), closeAgent: (input: CloseInput) => closing([], input) };
    await withWorkflowWorker({ taskQueue, activities: fakesWith(fakes), code: null }, async () => {
      const change = { limits: { maxTurns: 5, timeoutMs: 600_000, outageMs: 600_000, historyEvents: 1 } };
      const handle = await withWorkflowWorker({ taskQueue, activities: {} }, async () => {
        const started = await start(taskQueue, change);
        await isAsked;
        return started;
      });
      // With no worker there to hear either of them, both come in one task.
      answer({ ...REPLY, next: 'continue' });
      await waitFor('the answer to be recorded', async () => (await countOf(handle, 'activityTaskCompleted')) === 2);
      await handle.cancel();
      await withWorkflowWorker({ taskQueue, activities: {} }, () => handle.result().catch(() => undefined));
      expect((await handle.describe()).status.name).toBe('CANCELLED');
      expect(await countOf(handle, 'workflowExecutionContinuedAsNew')).toBe(0);
    });
  });
});

async function countOf(handle: WorkflowHandle, name: 'activityTaskCompleted' | 'workflowExecutionContinuedAsNew') {
  const { events } = await handle.fetchHistory();
  return (events ?? []).filter((event) => event[`${name}EventAttributes`]).length;
}

describe('an input of a newer version', () => {
  const newer = AGENT_INPUT_VERSION + 1;

  it('promise 10: is refused by name before anything is done', async () => {
    const { error, calls } = await runBroken({}, { v: newer });
    expect((error as WorkflowFailedError).cause).toMatchObject({ type: 'Agent.Rejected' });
    expect((error as WorkflowFailedError).cause?.message).toContain(`input of version ${newer}`);
    expect(calls).toEqual([]);
  });

  it('promise 10: waits for a newer worker when one has brought it this far', async () => {
    await withRun({}, { v: newer, carried: CARRIED }, undefined, async (handle) => {
      const failure = await waitFor('the task to fail', async () =>
        (await handle.fetchHistory()).events
          ?.map((event) => event.workflowTaskFailedEventAttributes?.failure?.message)
          .find((message) => message !== undefined && message !== null),
      );
      expect(failure).toContain(`input of version ${newer}`);
      expect((await handle.describe()).status.name).toBe('RUNNING');
      await handle.terminate();
    });
  });
});

function fakesWith(fakes: Fakes, calls: string[] = []): Fakes {
  const noted = <A, R>(name: string, run: (input: A) => R) => {
    return (input: A): R => {
      calls.push(name);
      return run(input);
    };
  };
  const all = {
    openTranscript: () => ({ tools: [] }),
    callModel: () => REPLY,
    closeAgent: (input: CloseInput) => closing([], input),
    ...fakes,
  };
  return Object.fromEntries(Object.entries(all).map(([name, run]) => [name, noted(name, run as () => unknown)]));
}

function closing(seen: CloseInput[], input: CloseInput) {
  seen.push(input);
  const usage = { own: NO_USAGE, subtree: NO_USAGE };
  const { status, turn: turns, error } = input;
  return { agentId: 'agent-1', status, turns, preview: '', textBytes: 0, usage, ...(error !== undefined && { error }) };
}

async function runBroken(fakes: Fakes, change: object | undefined, code?: string) {
  const calls: string[] = [];
  const error = await withRun(
    fakes,
    change,
    code,
    (handle) => handle.result().catch((caught: unknown) => caught),
    calls,
  );
  return { error, calls };
}

async function withRun<T>(
  fakes: Fakes,
  change: object | undefined,
  code: string | undefined,
  work: (handle: WorkflowHandle) => Promise<T>,
  calls: string[] = [],
): Promise<T> {
  const taskQueue = `broken-${randomUUID()}`;
  const activities = fakesWith(fakes, calls);
  return withWorkflowWorker({ taskQueue, activities, ...(code !== undefined && { code }) }, async () =>
    work(await start(taskQueue, change)),
  );
}

function start(taskQueue: string, change: object | undefined): Promise<WorkflowHandle> {
  const options = { taskQueue, workflowId: taskQueue, workflowTaskTimeout: 10_000 };
  return client.workflow.start(AGENT_WORKFLOW, { ...options, args: change === undefined ? [] : [input(change)] });
}

function input(change: object): AgentInput {
  return {
    runId: 'agent-1',
    agentId: 'agent-1',
    transcript: '2026/11/30/rollout-x-agent-1',
    depth: 0,
    epoch: 0,
    objects: { policy: 'a', agentType: 'b', systemPrompt: 'c', toolSchemas: 'd' },
    agentType: 'general-purpose',
    description: 'broken on purpose',
    limits: { maxTurns: 5, timeoutMs: 600_000, outageMs: 600_000 },
    model: 'sim-1',
    prompt: 'hello',
    workspace: '/nowhere',
    trace: { traceId: '1'.repeat(32), spanId: '2'.repeat(16) },
    ...change,
  };
}

function steer(handle: WorkflowHandle, message: unknown): Promise<unknown> {
  return handle.executeUpdate(STEER_UPDATE, { args: [message] });
}

/** The built workflow code with one thing changed in it. */
async function changedBundle(from: string, to: string): Promise<string> {
  const code = await readFile(BUILT_BUNDLE, 'utf8');
  if (!code.includes(from)) throw new Error(`the bundle has no ${from}`);
  return code.replace(from, to);
}

/** An activity that goes on until its worker is told to end. */
function never(): Promise<never> {
  return Context.current().cancelled;
}

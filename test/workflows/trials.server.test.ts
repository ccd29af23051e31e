import { mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { queryStatus } from '../../src/client.ts';
import { workflowId } from '../../src/protocol.ts';
import { toMarker, toScriptPrompt } from '../../src/simulator/index.ts';
import type { InlineStep, Play } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import type { AgentMeta, TranscriptRecord } from '../../src/store/records.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { loseWorkers, tellOfDeath } from '../helpers/lose-workers.ts';
import { waitFor } from '../helpers/wait.ts';

/** What users of other agent harnesses have reported, played here. */

const task = (description: string, prompt: string) => ({ name: 'task', input: { description, prompt } });
const bash = (command: string) => ({ name: 'bash', input: { command } });
const search: InlineStep = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }] };

let harness: Harness;

afterEach(() => harness.close(), 60_000);

describe('kill -9 of all workers under a tree', () => {
  it('promise 1: children of one wording are two, each started once; what one had finished is not asked again', async () => {
    harness = await createHarness({ workers: 2 });
    const twin = toScriptPrompt([{ calls: [bash('echo twin >> count.txt')] }, hold('twins'), { text: 'twin is done' }]);
    const quick = toScriptPrompt([{ calls: [bash('echo quick >> count.txt')] }, { text: 'quick is done' }]);
    const steps: InlineStep[] = [
      { calls: [task('the same task', twin), task('the same task', twin), task('a quick one', quick)] },
      {
        expect: [{ includes: 'twin is done' }, { includes: 'twin is done' }, { includes: 'quick is done' }],
        text: 'all are back',
      },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'three children'));
    await waitFor('the quick one to have ended, the twins to hold', async () => {
      const agents = await childrenOf(run);
      const turns = await Promise.all(
        agents.map(async ({ agentId }) => repliesOf(await harness.records(run, agentId))),
      );
      const statuses = agents.map(({ status }) => status).toSorted();
      return statuses.join() === 'completed,running,running' && turns.every((count) => count === 2);
    });
    await whenHeld(harness, 'twins');
    await loseWorkers(harness);
    await harness.startWorker();
    await release(harness, 'twins');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all are back' });
    expect((await lines('count.txt')).toSorted()).toEqual(['quick', 'twin', 'twin']);
    const children = await childrenOf(run);
    expect(children.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    for (const { agentId } of children) {
      const records = await harness.records(run, agentId);
      expect(countOf(records, 'session_meta')).toBe(1);
      expect(countOf(records, 'end')).toBe(1);
    }
    const quickOne = children.find(({ description }) => description === 'a quick one');
    expect(countOf(await harness.records(run, quickOne?.agentId ?? ''), 'attempt')).toBe(2);
    const read = () => run.child(quickOne?.agentId ?? '').result();
    expect(await read()).toEqual(await read());
    const { events } = await run.handle.fetchHistory();
    const started = events?.filter((event) => event.startChildWorkflowExecutionInitiatedEventAttributes);
    expect(started).toHaveLength(3);
  }, 120_000);

  it('promise 4: depth, model and todo lists are those of each agent, also after continue-as-new', async () => {
    harness = await createHarness({ workers: 2, env: { ERRAND_MODEL: 'sim-small' } });
    const todos = (names: readonly string[]): InlineStep => ({
      calls: [{ name: 'todo_write', input: { todos: names.map((content) => ({ content, status: 'pending' })) } }],
    });
    const forged: InlineStep = { calls: [task('one too many', 'hello')] };
    const child = (name: string) =>
      toScriptPrompt(
        [
          todos([`${name} first`]),
          { ...search, repeat: 6 },
          forged,
          { expect: { isError: true, includes: 'no tool "task"' }, ...hold(name) },
          forged,
          { expect: { isError: true, includes: 'no tool "task"' }, ...search },
          { text: `${name} is done` },
        ],
        name,
      );
    const own = ['one', 'two', 'three', 'four', 'five'];
    const steps: InlineStep[] = [
      todos(own),
      { calls: [task('first of two', child('first')), task('second of two', child('second'))] },
      { expect: { includes: 'is done', isError: false }, ...search },
      { ...search, repeat: 4 },
      { text: 'all are back' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'with lists'), { hops: 1, historyEvents: 25 });
    for (const name of ['first', 'second']) await whenHeld(harness, name);
    await loseWorkers(harness);
    await harness.startWorker();
    for (const name of ['first', 'second']) await release(harness, name);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all are back' });
    const children = (await childrenOf(run)).toSorted((a, b) => a.description.localeCompare(b.description));
    expect(children.map(({ description, depth }) => [description, depth])).toEqual([
      ['first of two', 1],
      ['second of two', 1],
    ]);
    expect(await todosOf(run.runId)).toEqual(own);
    expect(await todosOf(children[0]?.workflowId ?? '')).toEqual(['first first']);
    expect(await todosOf(children[1]?.workflowId ?? '')).toEqual(['second first']);
    expect(new Set(harness.simulator.ledger().map(({ model }) => model))).toEqual(new Set(['sim-1']));
    const histories = (await harness.histories()).map(({ name }) => name);
    for (const { workflowId: id } of children) {
      expect(histories.filter((name) => name.startsWith(id)).length).toBeGreaterThan(1);
    }
  }, 120_000);

  it('promise 1: thinking goes back as it came; one that was cut before its signature is not sent', async () => {
    harness = await createHarness({ workers: 2 });
    const steps: InlineStep[] = [
      {
        thinking: 'first this',
        redacted: 'opaque',
        calls: [bash('echo one >> count.txt'), ...(hold('think').calls ?? [])],
      },
      { thinking: 'then that', calls: [bash('echo two >> count.txt')], fault: { cut: 'thinking', times: 1 } },
      { text: 'thought about it' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'thinks'));
    await whenHeld(harness, 'think');
    await loseWorkers(harness);
    await harness.startWorker();
    await release(harness, 'think');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'thought about it' });
    expect(await lines('count.txt')).toEqual(['one', 'two']);
    const replies = (await harness.records(run)).flatMap((record) =>
      record.type === 'message' && record.role === 'assistant' ? [record.content] : [],
    );
    const sent = harness.simulator
      .ledger()
      .at(-1)
      ?.messages?.filter(({ role }) => role === 'assistant');
    expect(sent?.map(({ content }) => content)).toEqual(replies.slice(0, 2));
    expect(replies[0]?.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'tool_use', 'tool_use']);
  }, 90_000);
});

describe('a worker that dies between a reply and its record', () => {
  it.each([
    ['settle.before', 2],
    ['settle.after', 1],
    ['completion.before', 1],
  ])(
    'promise 2: at %s, with other ids at a second answer: one effect, one result',
    async (point, asked) => {
      let requests = 0;
      const newIds: Play = ({ turn }) => {
        requests += 1;
        if (turn > 1) return { text: 'done' };
        return { calls: [{ ...bash('echo once >> count.txt'), id: `toolu_new_${requests}` }] };
      };
      harness = await createHarness({ workers: 0, simulator: { scenarios: { newIds } } });
      const armed = join(harness.home, '..', 'crash');
      await mkdir(armed);
      const run = await harness.run(`${toMarker('newIds')} go`);
      // The first time is the opening of the transcript.
      await writeFile(join(armed, point), point === 'completion.before' ? '2' : '1');
      const worker = await harness.startWorker({ ERRAND_CRASH_AT: armed });
      await waitFor(`the worker to die at ${point}`, () => worker.process.signalCode !== null);
      await tellOfDeath(harness, worker);
      await harness.startWorker();
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
      expect(await lines('count.txt')).toEqual(['once']);
      const turns = harness.simulator.ledger().map(({ turn }) => turn);
      expect(turns).toEqual([...Array.from({ length: asked }, () => 1), 2]);
      expect(JSON.stringify(harness.simulator.ledger().at(-1)?.messages)).toContain(`toolu_new_${asked}`);
    },
    90_000,
  );
});

describe('promise 6: a child that was announced', () => {
  it('has one ending, whatever it is, and its parent one result', async () => {
    harness = await createHarness({ workers: 1 });
    await harness.write('a.txt', 'alpha\n');
    const same = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
    const endings: readonly (readonly [string, string])[] = [
      ['completed', toScriptPrompt([{ text: 'fine' }], 'completed')],
      ['failed', toScriptPrompt([{ text: 'x', fault: { status: 403 } }], 'failed')],
      ['refused', toScriptPrompt([{ text: 'no', stopReason: 'refusal' }], 'refused')],
      ['failed', toScriptPrompt([{ ...same, repeat: 20 }], 'in circles')],
      ['max_turns', toScriptPrompt([{ ...search, text: 'searching', repeat: 20 }], 'too long')],
    ];
    const calls = [
      ...endings.map(([status, prompt], index) => task(`ends as ${status} ${index}`, prompt)),
      { name: 'task', input: { description: 'never starts', prompt: 'x', agent_type: 'nobody' } },
    ];
    const run = await harness.run(toScriptPrompt([{ calls }, { text: 'all are back' }], 'above them'), { maxTurns: 9 });
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all are back' });
    const children = await childrenOf(run);
    const named = new Map(children.map(({ description, status }) => [description, status]));
    endings.forEach(([status], index) => expect(named.get(`ends as ${status} ${index}`)).toBe(status));
    expect(children).toHaveLength(endings.length);
    for (const { agentId } of children) {
      const records = await harness.records(run, agentId);
      expect([countOf(records, 'session_meta'), countOf(records, 'end')]).toEqual([1, 1]);
    }
    expect((await queryStatus(harness.client, run.runId)).openChildren).toEqual([]);
    const results = (await harness.records(run)).flatMap((record) =>
      record.type === 'message' && record.role === 'user'
        ? record.content.filter(({ type }) => type === 'tool_result')
        : [],
    );
    expect(results).toHaveLength(calls.length);
  }, 90_000);

  it('is stopped with its parent when the time of that is up, before the last words', async () => {
    harness = await createHarness({ workers: 1 });
    const child = toScriptPrompt([{ calls: [bash(`sleep 600.${process.pid}`)] }], 'sleeper');
    const steps = [{ calls: [task('sleeps for ten minutes', child)] }, { text: 'that is what I have' }];
    const run = await harness.run(toScriptPrompt(steps, 'too slow'), { timeoutMs: 10_000 });
    expect(await run.result()).toMatchObject({ status: 'timeout', preview: 'that is what I have' });
    const [slept] = await childrenOf(run);
    expect(slept).toMatchObject({ status: 'cancelled' });
    expect(harness.processesIn(`600.${process.pid}`)).toEqual([]);
    expect(countOf(await harness.records(run, slept?.agentId), 'end')).toBe(1);
  }, 60_000);
});

describe('a child that continues as new', () => {
  it('promise 5: is cancelled by itself, and its parent goes on', async () => {
    harness = await createHarness({ workers: 2 });
    const endless = toScriptPrompt([{ ...search, fault: { delayMs: 20 }, repeat: 400 }], 'endless');
    const steps = [{ calls: [task('continues as new again', endless)] }, { text: 'went on' }];
    const run = await harness.run(toScriptPrompt(steps, 'above'), { historyEvents: 25, maxTurns: 500 });
    const child = await waitFor('the child to have continued as new twice', async () => {
      const [found] = await childrenOf(run);
      const records = found ? await harness.records(run, found.agentId) : [];
      return records.filter((record) => record.type === 'event' && record.name === 'owner').length >= 2 && found;
    });
    await harness.client.workflow.getHandle(workflowId(run.runId, child.agentId)).cancel();
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'went on' });
    expect((await childrenOf(run)).map(({ status }) => status)).toEqual(['cancelled']);
  }, 90_000);
});

describe('under a umask that lets everybody in', () => {
  it('all that a run leaves in the home is for its owner only', async () => {
    const before = process.umask(0);
    try {
      harness = await createHarness({ workers: 1 });
      const leaf = toScriptPrompt([{ calls: [bash('echo leaf; seq 20000')] }, { text: 'leaf is done' }]);
      const write = { name: 'write', input: { file_path: 'made.txt', content: 'made' } };
      const steps = [{ calls: [write, bash('seq 20000'), task('a leaf', leaf)] }, { text: 'done' }];
      const run = await harness.run(toScriptPrompt(steps, 'open to all'));
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
      const found = await readdir(harness.home, { recursive: true, withFileTypes: true });
      const paths = found.map((entry) => join(entry.parentPath, entry.name));
      const modes = await Promise.all(paths.map(async (path) => [path, (await stat(path)).mode & 0o077] as const));
      expect(paths.length).toBeGreaterThan(10);
      expect(modes.filter(([, mode]) => mode !== 0)).toEqual([]);
    } finally {
      process.umask(before);
    }
  }, 60_000);
});

async function childrenOf(run: Run): Promise<readonly AgentMeta[]> {
  return (await listAgents(harness.home, run.stem)).agents.filter(({ depth }) => depth > 0);
}

function repliesOf(records: readonly TranscriptRecord[]): number {
  return records.filter((record) => record.type === 'message' && record.role === 'assistant').length;
}

function countOf(records: readonly TranscriptRecord[], type: TranscriptRecord['type']): number {
  return records.filter((record) => record.type === type).length;
}

async function todosOf(id: string): Promise<readonly string[]> {
  return (await queryStatus(harness.client, id)).todos.map(({ content }) => content);
}

async function lines(file: string): Promise<readonly string[]> {
  return (await readFile(join(harness.workspace, file), 'utf8')).trim().split('\n');
}

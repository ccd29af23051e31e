import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowFailedError } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callFolder } from '../../src/effects/journal.ts';
import { jobFiles, readExit } from '../../src/jobs/job-folder.ts';
import { NO_USAGE, addUsage } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { conversation } from '../../src/store/chain.ts';
import { listAgents } from '../../src/store/listing.ts';
import type { TranscriptRecord } from '../../src/store/records.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

const bash = (command: string) => ({ name: 'bash', input: { command, timeout_ms: 120_000 } });

/** One line in the file is one real execution. */
const count = (mark: string) => ({ calls: [bash(`echo ${mark} >> count.txt`)] });

/** Counts too, and then stands still until the test lets it go on. */
const hold = (mark: string) => ({
  calls: [bash(`echo ${mark} >> count.txt; until [ -e go-${mark} ]; do sleep 0.05; done`)],
});
const task = (description: string, prompt: string) => ({ name: 'task', input: { description, prompt } });

const child = toScriptPrompt([count('child'), hold('held'), { text: 'child is done' }], 'child');
const parent = toScriptPrompt(
  [
    count('before'),
    {
      calls: [{ name: 'write', input: { file_path: 'made.txt', content: 'made' } }, task('a child that waits', child)],
    },
    { text: 'parent: {{result:0}}' },
  ],
  'parent',
);

describe('a reset in the Temporal UI', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness();
  }, 90_000);

  afterEach(() => harness.close());

  it('to an earlier turn while a child runs: ends the child, keeps what came before, asks anew and says what was done', async () => {
    const run = await harness.run(parent);
    await counted(harness, 'held');
    const branch = await resetTo(harness, run, 't2');
    await counted(harness, 'held', 2);
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 3 });

    expect(turnsAsked(harness, 'parent')).toEqual([1, 2, 2, 3]);
    expect(await counts(harness)).toEqual(['before', 'child', 'held', 'child', 'held']);
    const records = await harness.records(run);
    const chain = conversation(records);
    const fork = chain.find((record) => record.type === 'event' && record.name === 'fork');
    expect(fork).toMatchObject({ id: `${run.runId}:0:${branch}:0:fork`, parent: `${run.runId}:0::1:reply` });
    expect(messagesOf(chain)).toEqual(['1 user', '1 assistant', '2 user', '2 assistant', '3 user', '3 assistant']);
    expect(messagesOf(records)).toEqual([
      ...['1 user', '1 assistant', '2 user', '2 assistant'],
      ...['2 user', '2 assistant', '3 user', '3 assistant'],
    ]);
    const told = textOf(chain, 2);
    expect(told).toContain('- t2.0 write made.txt: done');
    expect(told).toContain('the sub-agent ended as cancelled\n  - t1.0 bash echo child >> count.txt: done');
    expect(told).toMatch(/- t2.0 bash echo held .*: interrupted; its effects are unknown/);
    expect(told).not.toContain('echo before');
    await expectEnds(harness, run, ['cancelled', 'completed', 'completed']);
    await expectExactBill(harness, run);
  }, 120_000);

  it('to the first turn: the prompt stays, everything else begins anew', async () => {
    const run = await harness.run(parent);
    await counted(harness, 'held');
    await resetTo(harness, run, 't1');
    await counted(harness, 'held', 2);
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 3 });
    expect(turnsAsked(harness, 'parent')).toEqual([1, 2, 1, 2, 3]);
    const chain = conversation(await harness.records(run));
    expect(messagesOf(chain)).toEqual([
      ...['1 user', '1 user', '1 assistant', '2 user', '2 assistant', '3 user', '3 assistant'],
    ]);
    expect(textOf(chain, 1)).toContain('- t1.0 bash echo before >> count.txt: done');
    await expectEnds(harness, run, ['cancelled', 'completed', 'completed']);
    await expectExactBill(harness, run);
  }, 120_000);

  it('to before the opening: nothing is written twice', async () => {
    const run = await harness.run(toScriptPrompt([hold('first'), { text: 'done' }], 'opened twice'));
    await counted(harness, 'first');
    await resetTo(harness, run, 'open');
    await counted(harness, 'first', 2);
    const left = callFolder(
      harness.home,
      { ...run, agentId: run.runId, transcript: run.stem, epoch: 0, branch: '' },
      't1.0',
    );
    expect(await readExit(jobFiles(left))).toMatchObject({ cancelled: true });
    await harness.write('go-first', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    const records = await harness.records(run);
    expect(records.filter(({ type }) => type === 'session_meta')).toHaveLength(1);
    expect(messagesOf(records).filter((message) => message === '1 user')).toHaveLength(2);
    expect(await counts(harness)).toEqual(['first', 'first']);
    expect(harness.processesIn('go-first')).toEqual([]);
  }, 120_000);

  it('to between a reply and its calls: what they did stands, nothing is done twice', async () => {
    const steps = [
      { calls: [bash('echo one >> count.txt'), bash('echo two >> count.txt')] },
      hold('held'),
      { text: 'done' },
    ];
    const run = await harness.run(toScriptPrompt(steps, 'reset between'));
    await counted(harness, 'held');
    await resetTo(harness, run, 't1.0');
    await counted(harness, 'held', 2);
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 3 });
    expect(await counts(harness)).toEqual(['one', 'two', 'held', 'held']);
    expect(turnsAsked(harness, 'reset between')).toEqual([1, 2, 2, 3]);
  }, 120_000);

  it('promise 2: to between a reply and its calls while one runs: what is kept stands, and the command goes on', async () => {
    const calls = [bash('echo one >> count.txt'), ...hold('held').calls];
    const run = await harness.run(toScriptPrompt([{ calls }, { text: 'done' }], 'reset in a turn'));
    await counted(harness, 'held');
    await resetTo(harness, run, 't1.0');
    await waitFor('the branch to begin', async () => JSON.stringify(await harness.records(run)).includes(':0:fork"'));
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 2 });
    expect(await counts(harness)).toEqual(['one', 'held']);
    expect(turnsAsked(harness, 'reset in a turn')).toEqual([1, 2]);
  }, 120_000);

  it('promise 2: finds files of the part that was left damaged: tells their outcome as unknown, and goes on', async () => {
    const write = { name: 'write', input: { file_path: 'made.txt', content: 'made' } };
    const calls = [write, bash('echo two >> count.txt'), ...hold('held').calls];
    const run = await harness.run(toScriptPrompt([count('one'), { calls }, { text: 'done' }], 'damaged'));
    await counted(harness, 'held');
    const damaged = [join(folderOf(run, 't2.0'), 'result.json'), jobFiles(folderOf(run, 't2.2')).spec];
    for (const file of damaged) await writeFile(file, '{"v":1,"val');
    const directory = join(folderOf(run, 't2.1'), 'result.json');
    await rm(directory);
    await mkdir(directory);
    await resetTo(harness, run, 't2');
    await waitFor('the branch to begin', async () => JSON.stringify(await harness.records(run)).includes(':fork"'));
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 3 });
    const told = textOf(conversation(await harness.records(run)), 2);
    for (const file of [damaged[0], directory]) expect(told).toContain(`outcome unknown: ${file} cannot be read`);
    expect(told).toMatch(/- t2.2 .*: interrupted; its effects are unknown/);
    for (const file of damaged) expect(await readFile(file, 'utf8')).toBe('{"v":1,"val');
  }, 120_000);

  it('promise 2: keeps a turn of which one result is damaged: that call is not run again, and told as unknown', async () => {
    const calls = [bash('echo one >> count.txt'), ...hold('held').calls];
    const run = await harness.run(toScriptPrompt([{ calls }, { text: 'told: {{result:0}}' }], 'damaged in a turn'));
    await counted(harness, 'held');
    const file = join(folderOf(run, 't1.0'), 'result.json');
    await writeFile(file, 'rubbish');
    await resetTo(harness, run, 't1.0');
    await waitFor('the branch to begin', async () => JSON.stringify(await harness.records(run)).includes(':0:fork"'));
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 2 });
    expect(await counts(harness)).toEqual(['one', 'held']);
    expect(textOf(conversation(await harness.records(run)), 2)).toContain(`outcome unknown: ${file} cannot be read`);
    expect(await readFile(file, 'utf8')).toBe('rubbish');
  }, 120_000);

  it('promise 10: finds a file of a newer version: the run fails with its name', async () => {
    const write = { name: 'write', input: { file_path: 'made.txt', content: 'made' } };
    const run = await harness.run(toScriptPrompt([{ calls: [write, ...hold('held').calls] }, { text: 'x' }], 'newer'));
    await counted(harness, 'held');
    const file = join(folderOf(run, 't1.0'), 'result.json');
    await writeFile(file, '{"v":2}');
    await resetTo(harness, run, 't1');
    const error = await run.result().catch((caught: unknown) => caught as WorkflowFailedError);
    expect((error as WorkflowFailedError).cause?.message).toContain(`${file} was written by a newer errand`);
    expect(await readFile(file, 'utf8')).toBe('{"v":2}');
  }, 120_000);

  function folderOf({ runId, stem }: Run, callId: string): string {
    return callFolder(harness.home, { runId, agentId: runId, transcript: stem, epoch: 0, branch: '' }, callId);
  }

  it('to before the start of a child that runs: it is ended, and its parent is told so', async () => {
    const run = await harness.run(parent);
    await counted(harness, 'held');
    await resetTo(harness, run, 'child');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 3 });
    expect(textOf(conversation(await harness.records(run)), 3)).toContain('cancelled before it was done');
    expect(await counts(harness)).toEqual(['before', 'child', 'held']);
    expect(turnsAsked(harness, 'parent')).toEqual([1, 2, 3]);
    expect(harness.processesIn('go-held')).toEqual([]);
    await expectEnds(harness, run, ['cancelled', 'completed']);
  }, 120_000);

  it('to before the start of a child that has ended: it answers from its transcript', async () => {
    await harness.write('go-held', '');
    const run = await harness.run(parent);
    await run.result();
    await resetTo(harness, run, 'child');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 3 });
    expect(await counts(harness)).toEqual(['before', 'child', 'held']);
    expect(turnsAsked(harness, 'child')).toEqual([1, 2, 3]);
    expect(turnsAsked(harness, 'parent')).toEqual([1, 2, 3, 3]);
    const records = await harness.records(run);
    expect(textOf(conversation(records), 3)).toContain('child is done');
    expect(records.filter(({ type }) => type === 'end')).toHaveLength(2);
    expect(conversation(records).filter(({ type }) => type === 'end')).toHaveLength(1);
    await expectExactBill(harness, run);
  }, 120_000);

  it('with a child that it keeps: waits for that very child', async () => {
    const run = await harness.run(parent);
    await counted(harness, 'held');
    await resetTo(harness, run, 'after the start');
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', turns: 3 });
    expect(await counts(harness)).toEqual(['before', 'child', 'held']);
    expect(turnsAsked(harness, 'child')).toEqual([1, 2, 3]);
    await expectEnds(harness, run, ['completed', 'completed']);
  }, 120_000);

  it('of the run that an earlier reset has left: forks from that one', async () => {
    const steps = [count('one'), count('two'), hold('held'), { text: 'done' }];
    const run = await harness.run(toScriptPrompt(steps, 'reset twice'));
    await counted(harness, 'held');
    const { runId } = (await run.handle.describe()) as { runId: string };
    const first = await resetTo(harness, run, 't2');
    await counted(harness, 'held', 2);
    const second = await resetTo(harness, run, 't3', runId);
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 4 });
    const chain = conversation(await harness.records(run));
    const ids = chain.filter(({ type }) => type === 'message').map(({ id }) => id.split(':')[2]);
    expect(ids).toEqual(['', '', '', '', second, second, second, second]);
    expect(JSON.stringify(chain)).not.toContain(`:${first}:`);
    expect(textOf(chain, 3)).toContain('- t2.0 bash echo two >> count.txt: done');
  }, 120_000);
});

/** Resets to right before the activity of that id (or the child) was asked for; answers the new run's id. */
async function resetTo(harness: Harness, run: Run, point: string, runId?: string): Promise<string> {
  const handle = harness.client.workflow.getHandle(run.runId, runId);
  const { events } = await handle.fetchHistory();
  const found = events?.find((event) =>
    point === 'child'
      ? event.startChildWorkflowExecutionInitiatedEventAttributes
      : point === 'after the start'
        ? event.childWorkflowExecutionStartedEventAttributes
        : event.activityTaskScheduledEventAttributes?.activityId === point,
  );
  const asked =
    found?.startChildWorkflowExecutionInitiatedEventAttributes ?? found?.activityTaskScheduledEventAttributes;
  const finish =
    asked?.workflowTaskCompletedEventId ??
    events?.find(
      ({ eventId, workflowTaskCompletedEventAttributes: done }) =>
        done && eventId && found?.eventId && eventId.gt(found.eventId),
    )?.eventId;
  const reset = await harness.client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: run.runId, runId: runId ?? '' },
    reason: 'test',
    workflowTaskFinishEventId: finish,
    requestId: crypto.randomUUID(),
  });
  return reset.runId;
}

function messagesOf(records: readonly TranscriptRecord[]): string[] {
  return records.flatMap((record) => (record.type === 'message' ? [`${record.turn} ${record.role}`] : []));
}

/** All that a turn's user messages say. */
function textOf(records: readonly TranscriptRecord[], turn: number): string {
  const messages = records.filter(
    (record) => record.type === 'message' && record.role === 'user' && record.turn === turn,
  );
  return messages
    .flatMap((record) => (record.type === 'message' ? record.content : []))
    .map((block) => String(block.text ?? block.content))
    .join('\n');
}

/** Readers see one end an agent; its meta and the server say the same. */
async function expectEnds(harness: Harness, run: Run, statuses: readonly string[]): Promise<void> {
  const { agents } = await listAgents(harness.home, run.stem);
  expect(agents.map(({ status }) => status).sort()).toEqual(statuses);
  for (const { agentId, workflowId, status } of agents) {
    const ends = conversation(await harness.records(run, agentId)).filter(({ type }) => type === 'end');
    expect(ends).toMatchObject([{ status }]);
    const there = await harness.client.workflow.getHandle(workflowId).describe();
    expect(there.status.name).toBe(status.toUpperCase());
  }
}

/** Every branch was paid for. */
async function expectExactBill(harness: Harness, run: Run): Promise<void> {
  const { agents } = await listAgents(harness.home, run.stem);
  const own = await Promise.all(agents.map(async ({ agentId }) => usageOf(await harness.records(run, agentId)).own));
  const sum = own.reduce(addUsage, NO_USAGE);
  const served = harness.simulator.ledger().reduce((total, { usage }) => total + usage.output_tokens, 0);
  expect(sum.outputTokens).toBe(served);
  expect(sum.requests).toBe(harness.simulator.ledger().length);
  expect(agents.find(({ agentId }) => agentId === run.runId)?.usage.subtree).toEqual(sum);
}

function turnsAsked(harness: Harness, name: string): number[] {
  const entries = harness.simulator.ledger();
  return entries.filter(({ messages }) => firstWords(messages).startsWith(name)).map(({ turn }) => turn);
}

function firstWords(messages: unknown): string {
  const [first] = messages as readonly { content: string | readonly { text?: string }[] }[];
  return typeof first?.content === 'string' ? first.content : (first?.content[0]?.text ?? '');
}

async function counts(harness: Harness): Promise<string[]> {
  const text = await readFile(join(harness.workspace, 'count.txt'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

async function counted(harness: Harness, mark: string, times = 1): Promise<void> {
  const isDone = async () => (await counts(harness)).filter((line) => line === mark).length >= times;
  await waitFor(`${mark} to be done ${times} times`, isDone, 60_000);
}

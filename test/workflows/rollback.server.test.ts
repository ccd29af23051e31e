import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callFolder } from '../../src/effects/journal.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { STEER_UPDATE } from '../../src/protocol.ts';
import type { AgentRef, SteeringMessage } from '../../src/protocol.ts';
import { listAgents } from '../../src/store/listing.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { startRewindableServer } from '../helpers/rewindable-server.ts';
import type { RewindableServer } from '../helpers/rewindable-server.ts';
import { waitFor } from '../helpers/wait.ts';

const bash = (command: string) => ({ name: 'bash', input: { command, timeout_ms: 120_000 } });

/** One line in the file is one real execution. */
const count = (mark: string) => ({ calls: [bash(`echo ${mark} >> count.txt`)] });

/** Counts too, and then stands still until the test lets it go on. */
const hold = (mark: string) => ({
  calls: [bash(`echo ${mark} >> count.txt; until [ -e go-${mark} ]; do sleep 0.05; done`)],
});

const look = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }] };
const task = (description: string, prompt: string) => ({ name: 'task', input: { description, prompt } });

const grandchild = toScriptPrompt(
  [
    { calls: [{ name: 'write', input: { file_path: 'made.txt', content: 'made\n' } }] },
    hold('below'),
    { text: 'grandchild is done' },
  ],
  'grandchild',
);
const child = toScriptPrompt(
  [
    count('child'),
    { calls: [task('a grandchild that waits', grandchild)] },
    { expect: { includes: 'grandchild is done' }, text: 'child is done' },
  ],
  'child',
);
const other = toScriptPrompt([count('other'), { text: 'other is done' }], 'other child');
const edit = { name: 'edit', input: { file_path: 'a.txt', old_string: 'two', new_string: 'two and more' } };
const tree = toScriptPrompt(
  [
    { ...look, repeat: 9 },
    { calls: [{ name: 'read', input: { file_path: 'a.txt' } }, edit] },
    { calls: [task('a child with a child', child), task('another child beside it', other)] },
    { ...hold('root'), expect: [{ includes: 'child is done' }, { includes: 'other is done' }] },
    { ...look, repeat: 2 },
    { text: 'all done' },
  ],
  'a tree of four',
);

describe('a server that is set back to an older copy of its database', () => {
  let server: RewindableServer;
  let harness: Harness;

  beforeEach(async () => {
    server = await startRewindableServer();
    harness = await createHarness({ env: { TEMPORAL_ADDRESS: server.address } });
    await harness.write('a.txt', 'one\ntwo\n');
  }, 90_000);

  afterEach(async () => {
    await harness.close();
    await server.close();
  });

  it.each([1, 10, 100])(
    'promise 2: with the last %i commits lost, at three moments, nothing is asked, done or said anew',
    async (lost) => {
      const run = await harness.run(tree);
      await counted(harness, 'below');
      await setBack(harness, server, run, lost);
      await harness.write('go-below', '');
      await counted(harness, 'root');
      await setBack(harness, server, run, lost);
      await harness.write('go-root', '');
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all done', turns: 15 });
      await setBack(harness, server, run, lost);
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all done', turns: 15 });
      expect((await counts(harness)).sort()).toEqual(['below', 'child', 'other', 'root']);
      expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('one\ntwo and more\n');
      expect(asked(harness)).toEqual([...new Set(asked(harness))]);
      await expectAllAgree(harness, run, Array(4).fill('completed'));
    },
    180_000,
  );

  it('promise 2: workers that live through it go on with what the server knows, not with what they remember', async () => {
    await harness.startWorker();
    const run = await harness.run(tree);
    await counted(harness, 'below');
    await server.lose(60);
    await harness.write('go-below', '');
    await counted(harness, 'root');
    await server.lose(60);
    await harness.write('go-root', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'all done', turns: 15 });
    expect((await counts(harness)).sort()).toEqual(['below', 'child', 'other', 'root']);
    expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('one\ntwo and more\n');
    expect(asked(harness)).toEqual([...new Set(asked(harness))]);
    expect(harness.workers.map(({ process }) => process.exitCode)).toEqual([null, null]);
    await expectAllAgree(harness, run, Array(4).fill('completed'));
  }, 180_000);

  it('promise 2: a call whose result is sealed is not made again, also when its journal is gone', async () => {
    const run = await harness.run(toScriptPrompt([count('sealed'), hold('held'), { text: 'done' }], 'sealed'));
    const before = server.commits();
    await counted(harness, 'held');
    await rm(callFolder(harness.home, refOf(run), 't1.0'), { recursive: true });
    await powerCut(harness, () => server.goBackTo(before));
    await harness.write('go-held', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 3 });
    expect(await counts(harness)).toEqual(['sealed', 'held']);
    expect(asked(harness)).toHaveLength(3);
  }, 120_000);

  it('promise 5: a cancel that it lost still holds for every agent that had ended', async () => {
    const run = await harness.run(tree);
    await counted(harness, 'below');
    const before = server.commits();
    await run.handle.cancel();
    await run.result().catch(() => undefined);
    const [told, calls] = [await allRecords(harness, run), asked(harness)];
    await powerCut(harness, () => server.goBackTo(before));
    await run.result().catch(() => undefined);
    await expectAllAgree(harness, run, Array(4).fill('cancelled').with(2, 'completed'));
    expect(await allRecords(harness, run)).toEqual(told);
    expect(asked(harness)).toEqual(calls);
    expect((await counts(harness)).sort()).toEqual(['below', 'child', 'other']);
  }, 180_000);

  it('keeps a steering message that it lost, in its place, and takes it once when it is sent again', async () => {
    const steps = [hold('first'), hold('second'), { text: 'done' }];
    const run = await harness.run(toScriptPrompt(steps, 'steered'));
    await counted(harness, 'first');
    const before = server.commits();
    await steer(run, { id: 'm1', text: 'look to the left' });
    await harness.write('go-first', '');
    await counted(harness, 'second');
    await powerCut(harness, () => server.goBackTo(before));
    await steer(run, { id: 'm2', text: 'and to the right' });
    await steer(run, { id: 'm1', text: 'look to the left' });
    await harness.write('go-second', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done', turns: 3 });
    const told = (await harness.records(run)).flatMap((record) => ('steering' in record ? [record] : []));
    expect(told).toMatchObject([
      { turn: 2, steering: ['m1'] },
      { turn: 3, steering: ['m2'] },
    ]);
    expect(await counts(harness)).toEqual(['first', 'second']);
    expect(asked(harness)).toHaveLength(3);
  }, 120_000);

  it('goes on with the turn that a lost message began at the end', async () => {
    const steps = [{ text: 'over', fault: { betweenMs: 300, times: 1 } }, hold('more'), { text: 'over now' }];
    const run = await harness.run(toScriptPrompt(steps, 'steered at its end'));
    await waitFor('the reply to begin', () => harness.simulator.ledger().length > 0);
    const before = server.commits();
    await steer(run, { id: 'm1', text: 'one thing more' });
    await counted(harness, 'more');
    await powerCut(harness, () => server.goBackTo(before));
    await harness.write('go-more', '');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'over now', turns: 3 });
    expect(asked(harness)).toHaveLength(3);
    expect(await counts(harness)).toEqual(['more']);
  }, 120_000);
});

/** What was said before is what is there afterwards: same records, first of all. */
async function setBack(harness: Harness, server: RewindableServer, run: Run, commits: number): Promise<void> {
  const before = await allRecords(harness, run);
  await powerCut(harness, () => server.lose(commits));
  const after = await allRecords(harness, run);
  for (const [agentId, records] of Object.entries(before)) {
    expect(after[agentId]?.slice(0, records.length)).toEqual(records);
  }
}

/** Takes the workers down too: only then does a server lose what it has committed. */
async function powerCut(harness: Harness, setServerBack: () => Promise<void>): Promise<void> {
  await Promise.all(harness.workers.map((worker) => worker.kill('SIGKILL')));
  await setServerBack();
  await harness.startWorker();
}

function refOf({ runId, stem }: Run): AgentRef {
  return { runId, agentId: runId, transcript: stem, epoch: 0, branch: '' };
}

async function steer(run: Run, message: SteeringMessage): Promise<void> {
  await run.handle.executeUpdate<string, [SteeringMessage]>(STEER_UPDATE, { args: [message], updateId: message.id });
}

async function allRecords(harness: Harness, run: Run) {
  const { agents } = await listAgents(harness.home, run.stem);
  const all = agents.map(async ({ agentId }) => [agentId, await harness.records(run, agentId)] as const);
  return Object.fromEntries(await Promise.all(all));
}

/** Every agent has one terminal record, and its meta and the server say the same. */
async function expectAllAgree(harness: Harness, run: Run, statuses: readonly string[]): Promise<void> {
  const { agents } = await listAgents(harness.home, run.stem);
  expect(agents.map(({ status }) => status).sort()).toEqual([...statuses].sort());
  for (const { agentId, workflowId, status } of agents) {
    const ends = (await harness.records(run, agentId)).filter(({ type }) => type === 'end');
    expect(ends).toMatchObject([{ status }]);
    const there = await harness.client.workflow.getHandle(workflowId).describe();
    expect(there.status.name).toBe(status.toUpperCase());
  }
}

/** Agent and turn of every request. */
function asked(harness: Harness): string[] {
  return harness.simulator.ledger().map(({ agentMarker, turn }) => `${agentMarker} ${turn}`);
}

async function counts(harness: Harness): Promise<string[]> {
  const text = await readFile(join(harness.workspace, 'count.txt'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

async function counted(harness: Harness, mark: string): Promise<void> {
  await waitFor(`${mark} to be done`, async () => (await counts(harness)).includes(mark), 60_000);
}

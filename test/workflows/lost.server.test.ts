import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Usage } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import type { AgentMeta } from '../../src/store/records.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

/** A command that no other test process on this machine runs. */
const long = (seconds: number) => `sleep ${seconds}.${process.pid}`;

const sleeper = (seconds: number) =>
  toScriptPrompt(
    [{ calls: [{ name: 'bash', input: { command: `echo begun; ${long(seconds)}`, timeout_ms: 900_000 } }] }],
    'sleeper',
  );

/** Continues as new again and again. */
const search = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }], fault: { delayMs: 50 } };
const endless = toScriptPrompt([{ ...search, repeat: 300 }], 'endless');

const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
const silent = toScriptPrompt([read, { text: 'never said', fault: { silence: 'text' } }], 'silent');

const task = (description: string, prompt: string) => ({ name: 'task', input: { description, prompt } });

describe('promise 6: a terminated agent gets its ending', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 2, config: 'limits:\n  reconcileMs: 300\n' });
    await harness.write('a.txt', 'alpha\n');
  }, 60_000);

  afterEach(() => harness.close());

  it('a root in a command: the command is gone, the ending is written once, by whichever worker', async () => {
    const run = await harness.run(sleeper(601));
    await waitFor('the command to run', () => harness.processesIn(long(601)).length > 0);
    await run.handle.terminate('by hand');
    const [root] = await whenAllEnded(harness, run);
    expect(root).toMatchObject({ status: 'lost', error: 'terminated', turns: 1 });
    expect(harness.processesIn(long(601))).toEqual([]);
    expect(await endsOf(harness, run, run.runId)).toMatchObject([{ status: 'lost' }]);
  }, 90_000);

  it('a root above others: those below are cancelled, also one that has continued as new, and are in its bill', async () => {
    const children = [
      task('sleeps for ten minutes', sleeper(602)),
      task('continues as new again', endless),
      task('waits for a silent model', silent),
    ];
    const run = await harness.run(toScriptPrompt([{ calls: children }], 'above'), { historyEvents: 40, maxTurns: 500 });
    await waitFor('the command to run', () => harness.processesIn(long(602)).length > 0);
    await waitFor('a child to have continued as new', () => hasContinued(harness, run), 60_000);
    await waitFor('the silent call to be open', () => hasOpenRequest(harness, 'silent'));
    await run.handle.terminate('by hand');
    const agents = await whenAllEnded(harness, run);
    expect(agents.map(({ status }) => status)).toEqual(['lost', 'cancelled', 'cancelled', 'cancelled']);
    expect(harness.processesIn(long(602))).toEqual([]);
    for (const { workflowId, depth } of agents) {
      const { status } = await harness.client.workflow.getHandle(workflowId).describe();
      expect(status.name).toBe(depth === 0 ? 'TERMINATED' : 'CANCELLED');
    }
    const own = await Promise.all(agents.map(async ({ agentId }) => usageOf(await harness.records(run, agentId)).own));
    expect(tokens(agents[0]?.usage.subtree)).toBe(own.reduce((sum, usage) => sum + (tokens(usage) ?? 0), 0));
  }, 120_000);

  it('a child in a model call: its parent goes on, and what the call had cost is counted before the ending', async () => {
    const run = await harness.run(
      toScriptPrompt([{ calls: [task('waits for a silent model', silent)] }, { text: 'went on' }], 'above silent'),
    );
    const child = await waitFor('the child to ask again', () => childInTurn(harness, run, 2));
    await run.child(child).terminate('by hand');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'went on' });
    const records = await harness.records(run, child);
    expect(records.at(-1)).toMatchObject({ type: 'end', status: 'lost', usage: { own: { requests: 2 } } });
    const [root] = (await listAgents(harness.home, run.stem)).agents;
    expect(root?.usage.subtree.requests).toBe(4);
  }, 90_000);

  it('a child in a command: the command is gone before its parent goes on', async () => {
    const run = await harness.run(
      toScriptPrompt([{ calls: [task('sleeps for ten minutes', sleeper(603))] }, { text: 'went on' }], 'above sleeper'),
    );
    await waitFor('the command to run', () => harness.processesIn(long(603)).length > 0);
    const { agents } = await listAgents(harness.home, run.stem);
    await run.child(agents[1]?.agentId ?? '').terminate('by hand');
    await waitFor('the parent to ask again', async () => (await turnsAsked(harness, run, run.runId)).includes(2));
    expect(harness.processesIn(long(603))).toEqual([]);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'went on' });
  }, 90_000);
});

/** All agents of the run, root first, once none of them is open. */
async function whenAllEnded(harness: Harness, run: Run): Promise<readonly AgentMeta[]> {
  return waitFor(
    'every agent to have ended',
    async () => {
      const { agents } = await listAgents(harness.home, run.stem);
      return agents.length > 0 && agents.every(({ status }) => status !== 'running') && agents;
    },
    60_000,
  );
}

async function hasContinued(harness: Harness, run: Run): Promise<boolean> {
  const { agents } = await listAgents(harness.home, run.stem);
  const child = agents.find(({ description }) => description === 'continues as new again');
  const records = child ? await harness.records(run, child.agentId) : [];
  return records.some((record) => record.type === 'event' && record.name === 'owner');
}

async function childInTurn(harness: Harness, run: Run, turn: number): Promise<string | undefined> {
  const child = (await listAgents(harness.home, run.stem)).agents[1]?.agentId;
  if (child === undefined || !(await turnsAsked(harness, run, child)).includes(turn)) return undefined;
  return hasOpenRequest(harness, 'silent') ? child : undefined;
}

function hasOpenRequest(harness: Harness, word: string): boolean {
  return harness.simulator
    .ledger()
    .some(({ outcome, turn, messages }) => outcome === 'open' && turn === 2 && JSON.stringify(messages).includes(word));
}

async function turnsAsked(harness: Harness, run: Run, agentId: string): Promise<readonly number[]> {
  const records = await harness.records(run, agentId);
  return records.flatMap((record) => (record.type === 'attempt' ? [record.turn] : []));
}

async function endsOf(harness: Harness, run: Run, agentId: string) {
  return (await harness.records(run, agentId)).filter(({ type }) => type === 'end');
}

function tokens(usage: Usage | undefined): number | undefined {
  return usage && usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

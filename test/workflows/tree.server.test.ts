import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stubbedIds } from '../../src/model/context.ts';
import type { Usage } from '../../src/protocol.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import type { LedgerEntry } from '../../src/simulator/index.ts';
import { conversation } from '../../src/store/chain.ts';
import { runFolder } from '../../src/store/layout.ts';
import { agentTree, listAgents } from '../../src/store/listing.ts';
import { toWireMessages } from '../../src/store/messages.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';

const leaf = (name: string) =>
  toScriptPrompt([{ calls: [{ name: 'read', input: { file_path: 'a.txt' } }] }, { text: `${name} has read it` }], name);

const middle = (name: string) =>
  toScriptPrompt(
    [
      { calls: [{ name: 'task', input: { description: `grandchild of ${name}`, prompt: leaf(`${name}-below`) } }] },
      { expect: { includes: '[Agent:', isError: false }, text: `${name}: {{result:0}}` },
    ],
    name,
  );

const tree = toScriptPrompt(
  [
    { calls: [{ name: 'glob', input: { pattern: '*.txt' } }] },
    {
      calls: [
        { name: 'task', input: { description: 'first child of three', prompt: middle('one') } },
        { name: 'task', input: { description: 'second child of three', prompt: middle('two') } },
        { name: 'task', input: { description: 'third child of three', prompt: leaf('three') } },
      ],
    },
    {
      expect: [
        { includes: '[Agent: first child of three]' },
        { includes: '[Agent: second child of three]' },
        { includes: '[Agent: third child of three]' },
      ],
      text: 'all three are back',
    },
  ],
  'a tree of six',
);

describe('a tree of a root, three children and two grandchildren', () => {
  let harness: Harness;
  let run: Run;

  beforeAll(async () => {
    harness = await createHarness({ workers: 2 });
    await harness.write('a.txt', 'alpha\n');
    run = await harness.run(tree);
    const result = await run.result();
    expect(result).toMatchObject({ status: 'completed', preview: 'all three are back', turns: 3 });
  }, 120_000);

  afterAll(() => harness.close());

  it('promise 7: the bill is exact', async () => {
    const { agents } = await listAgents(harness.home, run.stem);
    expect(agents).toHaveLength(6);
    const own = await Promise.all(agents.map(async ({ agentId }) => usageOf(await harness.records(run, agentId))));
    expect(own.flatMap(({ unsettled }) => unsettled)).toEqual([]);
    const served = sum(harness.simulator.ledger().map(usageOfEntry));
    expect(sum(own.map((usage) => usage.own))).toEqual(served);
    const root = agents.find(({ agentId }) => agentId === run.runId);
    expect(tokens(root?.usage.subtree)).toEqual(served);
  });

  it('replays each transcript to exactly the messages that the model server received', async () => {
    const { agents } = await listAgents(harness.home, run.stem);
    const received = harness.simulator.ledger().map(({ messages }) => JSON.stringify(withoutMarks(messages)));
    for (const { agentId } of agents) {
      const records = conversation(await harness.records(run, agentId));
      for (const [index, record] of records.entries()) {
        if (record.type !== 'message' || record.role !== 'assistant') continue;
        const before = records.slice(0, index);
        const sent = toWireMessages(before, { stubbed: stubbedIds(before) });
        expect(received).toContain(JSON.stringify(sent));
      }
    }
  });

  it('links metas both ways and keeps every agent in a file of its own', async () => {
    const { agents } = await listAgents(harness.home, run.stem);
    const [root] = agentTree(agents);
    expect(root?.agents.map(({ depth, description, agents: below }) => [depth, description, below.length])).toEqual([
      [1, 'first child of three', 1],
      [1, 'second child of three', 1],
      [1, 'third child of three', 0],
    ]);
    for (const { agentId, parentAgentId, callId } of agents) {
      const records = await harness.records(run, agentId);
      expect(records.every(({ id }) => id.startsWith(`${agentId}:`))).toBe(true);
      if (parentAgentId === null) continue;
      const parent = await harness.records(run, parentAgentId);
      const calls = parent.flatMap((record) => ('calls' in record ? record.calls : []));
      expect(calls.find((call) => call.callId === callId)?.task?.agentId).toBe(agentId);
    }
    const files = await readdir(join(runFolder(harness.home, run.stem), 'subagents'));
    expect(files.filter((name) => name.endsWith('.jsonl'))).toHaveLength(5);
  });

  it('promise 6: every agent ends exactly once', async () => {
    const { agents } = await listAgents(harness.home, run.stem);
    for (const { agentId } of agents) {
      const ends = (await harness.records(run, agentId)).filter(({ type }) => type === 'end');
      expect(ends).toHaveLength(1);
    }
  });

  it('keeps the key and the conversation out of history and files', async () => {
    const { agents } = await listAgents(harness.home, run.stem);
    for (const { workflowId, agentId } of agents) {
      const history = JSON.stringify(await harness.client.workflow.getHandle(workflowId).fetchHistory());
      expect(history).not.toContain('sk-test-secret');
      const text = JSON.stringify(await harness.records(run, agentId));
      expect(text).not.toContain('sk-test-secret');
    }
    expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('alpha\n');
  });
});

type Tokens = Omit<Usage, 'requests' | 'costUsd'>;

function usageOfEntry({ usage }: LedgerEntry): Tokens {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    cacheReadTokens: usage.cache_read_input_tokens,
    cacheWriteTokens: usage.cache_creation_input_tokens,
  };
}

function tokens(usage: Usage | undefined): Tokens | undefined {
  if (!usage) return undefined;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens };
}

function sum(usages: readonly Tokens[]): Tokens {
  return usages.reduce((total, usage) => ({
    inputTokens: total.inputTokens + usage.inputTokens,
    outputTokens: total.outputTokens + usage.outputTokens,
    cacheReadTokens: total.cacheReadTokens + usage.cacheReadTokens,
    cacheWriteTokens: total.cacheWriteTokens + usage.cacheWriteTokens,
  }));
}

/** Cache marks move with every request; they are no part of the conversation. */
function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'cache_control')
      .map(([name, inner]) => [name, withoutMarks(inner)]),
  );
}

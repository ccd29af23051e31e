import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_USAGE, addUsage } from '../../src/protocol.ts';
import { subtreeUsage, usageOf } from '../../src/store/usage.ts';
import { attempt, meta, reply, session, toRecords, tokens, usage, user } from './fixtures.ts';

describe('own usage', () => {
  it('adds settled attempts, each once, on every branch and in every epoch', () => {
    const records = toRecords([
      session(),
      user({}),
      attempt({}, 1),
      usage({}, 1),
      reply({}),
      attempt({ branch: 'b' }, 1),
      usage({ branch: 'b' }, 1, { usage: tokens(7, 3) }),
      attempt({ epoch: 1 }, 1),
      usage({ epoch: 1 }, 1),
    ]);
    const once = usageOf(records);
    expect(once).toEqual({
      own: { ...NO_USAGE, inputTokens: 207, outputTokens: 23, requests: 3, costUsd: null },
      unsettled: [],
    });
    expect(usageOf([...records, ...records])).toEqual(once);
  });

  it('an attempt without usage is unsettled between nothing and everything', () => {
    expect(usageOf(toRecords([attempt({ turn: 4 }, 2)]))).toEqual({
      own: NO_USAGE,
      unsettled: [
        { turn: 4, attempt: 2, inputTokensMin: 0, inputTokensMax: 500, outputTokensMin: 0, outputTokensMax: 1000 },
      ],
    });
  });

  it('a cut attempt counts as far as it was seen, and stays unsettled', () => {
    const seen = { ...tokens(100, 40), cacheReadTokens: 20, cacheWriteTokens: 3 };
    expect(usageOf(toRecords([attempt({}, 1), usage({}, 1, { settled: false, usage: seen })]))).toEqual({
      own: { ...seen, costUsd: null },
      unsettled: [
        { turn: 1, attempt: 1, inputTokensMin: 123, inputTokensMax: 123, outputTokensMin: 40, outputTokensMax: 1000 },
      ],
    });
  });

  it('a settled figure replaces the partial one of its attempt, whichever came first', () => {
    const drafts = [
      attempt({}, 1),
      usage({}, 1, { settled: false, usage: tokens(100, 4), slot: 'cut.1' }),
      usage({}, 1),
    ];
    for (const order of [drafts, drafts.toReversed()]) {
      expect(usageOf(toRecords(order))).toEqual({ own: { ...tokens(100, 10) }, unsettled: [] });
    }
  });

  it('a mix of endings adds up, in any order', () => {
    const drafts = [
      attempt({}, 1),
      usage({}, 1, { usage: { ...NO_USAGE } }),
      attempt({}, 2),
      usage({}, 2, { settled: false, usage: tokens(50, 5) }),
      attempt({}, 3),
      usage({}, 3, { usage: tokens(60, 6) }),
      attempt({ turn: 2 }, 1),
      usage({ turn: 3 }, 1, { usage: tokens(70, 7) }),
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(drafts, { minLength: drafts.length }), (order) => {
        const { own, unsettled } = usageOf(toRecords(order));
        expect(own).toEqual({ ...NO_USAGE, inputTokens: 180, outputTokens: 18, requests: 3, costUsd: null });
        expect(new Set(unsettled.map(({ turn, attempt: number }) => `${turn}.${number}`))).toEqual(
          new Set(['1.2', '2.1']),
        );
      }),
    );
  });
});

describe('subtree usage', () => {
  const agents = ['root', 'a', 'b', 'a1'].map((agentId, i) =>
    meta({
      agentId,
      parentAgentId: { root: null, a: 'root', b: 'root', a1: 'a' }[agentId] ?? null,
      // A subtree figure of its own, to show that it is never added.
      usage: { own: tokens(10 ** i, 1), subtree: tokens(9999, 9999) },
    }),
  );

  it.each([
    ['root', 1111],
    ['a', 1010],
    ['a1', 1000],
  ])('of %s is the sum of what each agent used itself', (agentId, inputTokens) => {
    expect(subtreeUsage(agents, agentId).inputTokens).toBe(inputTokens);
    expect(subtreeUsage([...agents, ...agents].reverse(), agentId).inputTokens).toBe(inputTokens);
  });

  it('of the root is the sum over all agents, however they are nested', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1, maxLength: 20 }), (seeds) => {
        const tree = seeds.map((seed, i) =>
          meta({
            agentId: `${i}`,
            parentAgentId: i === 0 ? null : `${seed % i}`,
            usage: { own: tokens(seed, i), subtree: tokens(1, 1) },
          }),
        );
        expect(subtreeUsage(tree, '0')).toEqual(tree.map((agent) => agent.usage.own).reduce(addUsage, NO_USAGE));
      }),
    );
  });

  it('names an agent that is not there', () => {
    expect(() => subtreeUsage(agents, 'x')).toThrow('No agent x among the 4 given');
  });
});

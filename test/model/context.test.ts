import { describe, expect, test } from 'vitest';
import { contextSize, planStubs, stubbedIds } from '../../src/model/context.ts';
import type { EventRecord, TranscriptRecord, UsageRecord } from '../../src/store/records.ts';
import { replyRecord, result, text, use, userRecord } from '../store/message-records.ts';

const BASE = { v: 1, parent: null, at: '2026-11-30T00:00:00.000Z' };

function usage(turn: number, inputTokens: number, outcome: UsageRecord['outcome'] = 'complete'): UsageRecord {
  const counts = {
    inputTokens,
    outputTokens: 5,
    cacheReadTokens: 20,
    cacheWriteTokens: 10,
    requests: 1,
    costUsd: null,
  };
  return {
    ...BASE,
    id: `a:0::${turn}:usage.1`,
    type: 'usage',
    turn,
    attempt: 1,
    settled: true,
    outcome,
    usage: counts,
  };
}

/** The last turn of a conversation, with what the server counted for it. */
function counted(turn: number, inputTokens: number): TranscriptRecord[] {
  return [replyRecord(turn, [text('.')]), usage(turn, inputTokens)];
}

function stubbed(turn: number, toolUseIds: readonly string[]): EventRecord {
  return { ...BASE, id: `a:0::${turn}:stubbed`, type: 'event', turn, name: 'stubbed', data: { toolUseIds } };
}

/** Turns whose results have these sizes in characters. */
function conversation(sizes: readonly number[]): TranscriptRecord[] {
  return sizes.flatMap((size, index) => [
    replyRecord(index + 1, [use(`c${index}`)]),
    userRecord(index + 2, [result(`c${index}`, 'x'.repeat(size))]),
  ]);
}

describe('the size of the context', () => {
  test('is what the server counted last, and an estimate of what came since', () => {
    const added = userRecord(2, [result('a', 'x'.repeat(3500))]);
    const records = [userRecord(1, [text('go')]), usage(1, 100), replyRecord(1, [use('a')]), added];
    expect(contextSize(records)).toBe(135 + Math.ceil(JSON.stringify(added.content).length / 3.5));
  });

  test('does not count a reply again, whether it is recorded before its usage or after', () => {
    const reply = replyRecord(1, [text('x'.repeat(1000))]);
    expect(contextSize([usage(1, 100), reply])).toBe(135);
    expect(contextSize([reply, usage(1, 100)])).toBe(135);
  });

  test('does not believe a count that was cut', () => {
    expect(contextSize([usage(1, 100), replyRecord(1, [text('x')]), usage(2, 9000, 'cut')])).toBe(135);
  });

  test('finds the count beside the chain, of the very branch', () => {
    const reply = replyRecord(1, [text('x'.repeat(1000))]);
    expect(contextSize([reply], { usages: [usage(1, 100)] })).toBe(135);
    const other = { ...usage(1, 100), id: 'a:0:reset:1:usage.1' };
    expect(contextSize([reply], { usages: [other] })).toBeGreaterThan(250);
  });

  test('is estimated whole before the first count', () => {
    expect(contextSize([userRecord(1, [text('x'.repeat(350))])], { fixedBytes: 3500 })).toBeGreaterThan(1100);
  });

  test('shrinks when results become stubs', () => {
    const records = [...conversation([7000]), ...counted(2, 5000)];
    const saved = contextSize(records) - contextSize([...records, stubbed(2, ['c0'])]);
    expect(saved).toBeGreaterThan(1800);
    expect(saved).toBeLessThan(2000);
  });
});

describe('results to stub', () => {
  const sizes = [7000, 35_000, 14_000, 100, 70_000, 70_000];

  test('are none while there is room', () => {
    expect(planStubs({ records: [...conversation(sizes), ...counted(7, 79_000)], window: 100_000 })).toEqual([]);
  });

  test('are the largest of the old ones, until the target is met', () => {
    const records = [...conversation(sizes), ...counted(7, 81_000)];
    expect(planStubs({ records, window: 100_000, target: 0.75 })).toEqual(['c1']);
    expect(planStubs({ records, window: 100_000, target: 0.7 })).toEqual(['c1', 'c2']);
  });

  test('are never small ones, nor those of the last two turns while the request fits', () => {
    const records = [...conversation(sizes), ...counted(7, 100_000)];
    expect(planStubs({ records, window: 100_000, target: 0.1 })).toEqual(['c1', 'c2', 'c0']);
  });

  test('are those of the last two turns too where the request would be refused with them, the older first', () => {
    const records = [...conversation(sizes), ...counted(7, 130_000)];
    expect(planStubs({ records, window: 100_000, target: 0.99 })).toEqual(['c1', 'c2', 'c0', 'c4']);
    expect(planStubs({ records, window: 130_000, target: 0.6, most: 0.6 })).toEqual(['c1', 'c2', 'c0', 'c4', 'c5']);
  });

  test('go by age before size', () => {
    const many = Array.from({ length: 20 }, (_, index) => (index === 12 ? 70_000 : 7000));
    const plan = planStubs({ records: [...conversation(many), ...counted(21, 82_000)], window: 100_000 });
    expect(plan.indexOf('c12')).toBe(8);
  });

  test('are not decided twice', () => {
    const records = [...conversation(sizes), ...counted(7, 100_000), stubbed(7, ['c1'])];
    expect(planStubs({ records, window: 100_000, target: 0.1 })).toEqual(['c2', 'c0']);
    expect([...stubbedIds([...records, stubbed(8, ['c2'])])]).toEqual(['c1', 'c2']);
  });
});

import { describe, expect, test } from 'vitest';
import { MAX_CHILD_RESULT_BYTES, childResultText, finalText } from '../../src/model/last-text.ts';
import type { ChildResult } from '../../src/model/last-text.ts';
import type { AgentStatus } from '../../src/protocol.ts';
import { replyRecord, result, text, use, userRecord } from '../store/message-records.ts';

describe('the final text', () => {
  test('is the last one, also when later messages have none', () => {
    const records = [
      replyRecord(1, [text('early')]),
      replyRecord(2, [text('here'), use('a')]),
      userRecord(3, [result('a')]),
      replyRecord(3, [use('b')]),
      replyRecord(4, [text('(no text)')]),
    ];
    expect(finalText(records)).toEqual({ text: 'here', fromTurn: 2 });
  });

  test('is empty when nothing was ever said', () => {
    expect(finalText([userRecord(1, [text('go')]), replyRecord(1, [use('a')])])).toEqual({ text: '', fromTurn: 0 });
  });

  test('is whole when the answer was continued', () => {
    const records = [
      replyRecord(1, [text('before'), use('a')]),
      replyRecord(2, [text('one tw')], { stop: 'max_tokens' }),
      userRecord(3, [text('go on')]),
      replyRecord(3, [text('o three')]),
    ];
    expect(finalText(records)).toEqual({ text: 'one two three', fromTurn: 3 });
  });

  test('joins neighbouring blocks and sets others apart', () => {
    const records = [replyRecord(1, [text('a'), text('b'), { type: 'server_tool_use' }, text('c')])];
    expect(finalText(records).text).toBe('ab\n\nc');
  });
});

describe('what a parent is told', () => {
  const told = (more: Partial<ChildResult> = {}): string =>
    childResultText({
      description: 'count files',
      text: 'There are 3.',
      status: 'completed',
      transcriptPath: '/t/a.jsonl',
      ...more,
    });

  test('of a completed child is its text under its label', () => {
    expect(told()).toBe('[Agent: count files]\nThere are 3.');
  });

  test.each<[AgentStatus, Partial<ChildResult>, string]>([
    ['max_turns', { maxTurns: 30 }, 'stopped at its limit of 30 turns'],
    ['budget', {}, 'budget'],
    ['timeout', {}, 'time limit'],
    ['failed', { error: 'Model.Auth: no key' }, 'failed: Model.Auth: no key'],
    ['cancelled', {}, 'cancelled'],
    ['refused', {}, 'refused'],
    ['rejected', { error: 'hops used up' }, 'was not started: hops used up'],
    ['lost', {}, 'lost'],
  ])('of one that ended %s says so and still has its text', (status, more, words) => {
    const [, second = '', ...rest] = told({ status, ...more }).split('\n');
    expect(second).toContain(words);
    expect(rest).toEqual(['There are 3.']);
  });

  test.each<AgentStatus>(['completed', 'failed'])('of one that said nothing (%s) is never nothing', (status) => {
    expect(told({ text: ' \n', status })).toContain('it left no text; its transcript is /t/a.jsonl');
  });

  test.each([
    ['at the limit', MAX_CHILD_RESULT_BYTES - '[Agent: count files]\n'.length, false],
    ['one byte over it', MAX_CHILD_RESULT_BYTES - '[Agent: count files]\n'.length + 1, true],
    ['far over it', 1_000_000, true],
  ])('of a text %s fits', (_size, length, isCut) => {
    const words = told({ text: 'x'.repeat(length) });
    expect(Buffer.byteLength(words)).toBeLessThanOrEqual(MAX_CHILD_RESULT_BYTES);
    expect(words.includes('only the last')).toBe(isCut);
  });

  test('of a long text keeps its end in whole code points and says what was cut and where it is', () => {
    const words = told({ text: `begin${'😀'.repeat(20_000)}end`, status: 'timeout' });
    const [first = '', second = '', rest = ''] = words.split('\n');
    expect(first).toBe(
      `[Agent: count files] [only the last ${Buffer.byteLength(rest)} of 80008 bytes; the whole text is the last message in /t/a.jsonl]`,
    );
    expect(second).toContain('time limit');
    expect(rest).toMatch(/^(😀)+end$/u);
  });

  test('has a label of one line, whatever the description', () => {
    expect(told({ description: `a\n]b${'ä'.repeat(500)}` }).split('\n')[0]?.length).toBeLessThan(220);
  });
});

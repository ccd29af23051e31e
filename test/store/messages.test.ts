import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { INTERRUPTED, rawInputOf, toWireMessages, uniqueToolUseIds } from '../../src/store/messages.ts';
import type { ContentBlock, TranscriptRecord } from '../../src/store/records.ts';
import { replyRecord, result, text, use, userRecord } from './message-records.ts';
import { wireProblem } from './wire-rules.ts';

const PROMPT = userRecord(1, [text('do it')]);
const THINKING: ContentBlock = { type: 'thinking', thinking: 'hm', signature: 'sig' };

describe('results', () => {
  test('stay with their calls, first in the message and in the order of the calls', () => {
    const records = [
      PROMPT,
      replyRecord(1, [text('both'), use('a'), use('b')]),
      userRecord(2, [text('hurry'), result('b', 'B'), result('a', 'A')]),
    ];
    expect(toWireMessages(records).at(-1)?.content).toEqual([result('a', 'A'), result('b', 'B'), text('hurry')]);
  });

  test('that are missing are told to be interrupted', () => {
    const records = [PROMPT, replyRecord(1, [use('a'), use('b')]), userRecord(2, [result('b')])];
    expect(toWireMessages(records).at(-1)?.content).toEqual([result('a', INTERRUPTED, true), result('b')]);
  });

  test('are made up when the conversation ends with a call', () => {
    const messages = toWireMessages([PROMPT, replyRecord(1, [use('a')])]);
    expect(messages.at(-1)).toEqual({ role: 'user', content: [result('a', INTERRUPTED, true)] });
  });

  test('that nobody asked for are dropped, second ones too', () => {
    const records = [
      PROMPT,
      replyRecord(1, [use('a')]),
      userRecord(2, [result('a', '1'), result('a', '2'), result('z')]),
    ];
    expect(toWireMessages(records).at(-1)?.content).toEqual([result('a', '1')]);
  });

  test('that say nothing say so', () => {
    const records = [
      PROMPT,
      replyRecord(1, [use('a'), use('b')]),
      userRecord(2, [result('a', ' \n'), result('b', [text(''), text('x')])]),
    ];
    expect(toWireMessages(records).at(-1)?.content).toEqual([result('a', '(no output)'), result('b', [text('x')])]);
  });

  test('that were stubbed name the call and the way back to it', () => {
    const spilled = { callId: 't1.1', isError: false, fingerprint: '', streak: 1, facts: { spilledTo: '/runs/x.txt' } };
    const records = [
      PROMPT,
      replyRecord(1, [use('a'), use('b', 'grep'), use('c', 'bash')]),
      userRecord(2, [result('a', 'A'.repeat(5000)), result('b', 'B', true), result('c')], [spilled]),
    ];
    const content = toWireMessages(records, { stubbed: new Set(['a', 'b', 'c']) }).at(-1)?.content ?? [];
    expect(content.map((block) => block['content'])).toEqual([
      '[Result removed to save context: t1.0, read a.ts (5002 bytes). Make the call again if you need it.]',
      '[Result removed to save context: t1.1, grep a.ts (3 bytes). The whole text is in /runs/x.txt.]',
      '[Result removed to save context: t1.2, bash a.ts (4 bytes). What it did still stands; look at its effects rather than repeating it.]',
    ]);
    expect(content.map((block) => block['is_error'])).toEqual([false, true, false]);
  });
});

describe('text', () => {
  test('that is blank is dropped, and a message without any gets a placeholder', () => {
    const records = [userRecord(1, [text('')]), replyRecord(1, [text(' \n')]), userRecord(2, [text('go on')])];
    expect(toWireMessages(records).map(({ content }) => content)).toEqual([
      [text('(empty message)')],
      [text('(no text)')],
      [text('go on')],
    ]);
  });

  test('is well-formed and without NUL, keys of inputs included', () => {
    const records = [
      userRecord(1, [text('a\ud83d b\0c 😀')]),
      replyRecord(1, [use('a', 'write', { 'k\udc00': 'v\0' })]),
      userRecord(2, [result('a', 'x\udfff')]),
    ];
    const sent = JSON.stringify(toWireMessages(records));
    expect(sent).toContain('a\uFFFD b\u2400c 😀');
    expect(sent).toContain('"k\uFFFD":"v\u2400"');
    expect(sent).toContain('x\uFFFD');
  });
});

describe('thinking', () => {
  const loop = [PROMPT, replyRecord(1, [THINKING, use('a')]), userRecord(2, [result('a')])];

  test('goes back as the very block that came', () => {
    expect(toWireMessages(loop)[1]?.content[0]).toBe(THINKING);
    expect(toWireMessages(loop, { model: 'm-1' })[1]?.content[0]).toBe(THINKING);
  });

  test.each([
    ['of another model', { model: 'other' }],
    ['after the API refused it', { withoutThinking: true }],
  ])('%s is left out', (_why, options) => {
    expect(toWireMessages(loop, options)[1]?.content.map((block) => block.type)).toEqual(['tool_use']);
  });

  test.each([
    ['m-1', 'm-1-20260101'],
    ['m-1-latest', 'm-1-20260101'],
  ])('of %s stays when the server calls it %s', (asked, answered) => {
    const records = [PROMPT, replyRecord(1, [THINKING, text('x')], { model: answered })];
    expect(toWireMessages(records, { model: asked })[1]?.content).toContain(THINKING);
  });

  test.each([
    ['unsigned', { type: 'thinking', thinking: 'x', signature: '' }],
    ['cut', { type: 'thinking', thinking: 'x' }],
    ['empty redacted', { type: 'redacted_thinking', data: '' }],
  ])('that is %s is left out', (_why, block) => {
    const messages = toWireMessages([PROMPT, replyRecord(1, [block, text('x')])]);
    expect(messages[1]?.content).toEqual([text('x')]);
  });

  test('alone is followed by a placeholder', () => {
    expect(toWireMessages([PROMPT, replyRecord(1, [THINKING])])[1]?.content).toEqual([THINKING, text('(no text)')]);
  });

  test('of a continued answer stays first in a message of its own', () => {
    const paused = replyRecord(1, [THINKING, text('one')], { stop: 'pause_turn' });
    const messages = toWireMessages([PROMPT, paused, replyRecord(2, [THINKING, text('two')])]);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
  });
});

describe('calls', () => {
  test('with an id of before get one of their own, and so do their results', () => {
    const records = [
      PROMPT,
      replyRecord(1, [use('a')]),
      userRecord(2, [result('a', 'first')]),
      replyRecord(2, [use('a')]),
      userRecord(3, [result('a', 'second')]),
    ];
    const messages = toWireMessages(records);
    const [again] = messages[3]?.content ?? [];
    expect(again?.['id']).not.toBe('a');
    expect(messages[4]?.content).toEqual([result(String(again?.['id']), 'second')]);
  });

  test('that share an id in one message each keep their own result', () => {
    const records = [PROMPT, replyRecord(1, [use('a'), use('a')]), userRecord(2, [result('a', '1'), result('a', '2')])];
    const [, calls, answers] = toWireMessages(records);
    expect(answers?.content.map((block) => block['content'])).toEqual(['1', '2']);
    expect(answers?.content.map((block) => block['tool_use_id'])).toEqual(calls?.content.map(({ id }) => id));
  });

  test('with an impossible id, name or input are made possible', () => {
    const odd = use('a b/c', 'my tool!', 'not an object');
    const [block] = toWireMessages([PROMPT, replyRecord(1, [odd])])[1]?.content ?? [];
    expect(block).toMatchObject({ name: 'my_tool_', id: expect.stringMatching(/^a_b_c_\d+$/) as string });
    expect(rawInputOf(block?.['input'])).toBe('"not an object"');
  });

  test('keep their ids when those are new and valid', () => {
    const content = [text('x'), use('a'), use('b')];
    expect(uniqueToolUseIds(content, new Set(['c']))).toBe(content);
    expect(uniqueToolUseIds([use('a'), use('a')], new Set(['b'])).map(({ id }) => id)).toEqual(['a', 'a_3']);
  });
});

test('a conversation that starts with the assistant gets a first user message', () => {
  expect(toWireMessages([replyRecord(1, [text('hello')])])[0]?.role).toBe('user');
});

test('neighbouring messages of one role are one message', () => {
  const cut = replyRecord(1, [text('one')], { stop: 'max_tokens' });
  const messages = toWireMessages([PROMPT, userRecord(1, [text('and this')]), cut, replyRecord(2, [text('two')])]);
  expect(messages.map(({ content }) => content.length)).toEqual([2, 2]);
});

describe('any sequence of records', () => {
  const words = fc.oneof(fc.constantFrom('', ' ', 'ok', '\ud83d', 'a\0b'), fc.string({ unit: 'binary', maxLength: 6 }));
  const id = fc.constantFrom('a', 'b', 'c', 'toolu_1', '', 'b ad', '\udc00');
  const block: fc.Arbitrary<ContentBlock> = fc.oneof(
    words.map(text),
    fc.tuple(id, fc.constantFrom('read', 'bash', 'no way', ''), fc.jsonValue()).map((args) => use(...args)),
    fc
      .tuple(id, fc.oneof(words, fc.array(words.map(text), { maxLength: 2 })), fc.boolean())
      .map((args) => result(...args)),
    fc
      .tuple(words, fc.constantFrom('', 'sig'))
      .map(([thinking, signature]) => ({ type: 'thinking', thinking, signature })),
    fc.constantFrom('', 'data').map((data) => ({ type: 'redacted_thinking', data })),
    words.map((label) => ({ type: 'image', label, cache_control: { type: 'ephemeral' } })),
  );
  const content = fc.array(block, { maxLength: 5 });
  const record: fc.Arbitrary<TranscriptRecord> = fc.oneof(
    content.map((blocks) => userRecord(1, blocks)),
    content.map((blocks) => replyRecord(1, blocks)),
  );
  const sequence = fc.array(record, { minLength: 1, maxLength: 8 });
  const options = fc.record({
    stubbed: fc.array(id).map((ids) => new Set(ids)),
    model: fc.constantFrom(undefined, 'm-1', 'other'),
    withoutThinking: fc.boolean(),
  });

  test('comes out as the API takes it', () => {
    const check = (records: TranscriptRecord[], wire: Parameters<typeof toWireMessages>[1]): void => {
      expect(wireProblem(toWireMessages(records, wire))).toBeUndefined();
    };
    fc.assert(fc.property(sequence, options, check), { numRuns: 1500 });
  });

  test('keeps its earlier messages byte by byte when the conversation goes on', () => {
    const check = (before: TranscriptRecord[], after: TranscriptRecord[]): void => {
      // The last message may still grow: its results or a continued answer are yet to come.
      const prefix = toWireMessages([...before, replyRecord(9, [text('end')])]).slice(0, -1);
      const longer = toWireMessages([...before, replyRecord(9, [text('end')]), ...after]);
      const isGrowing = before.at(-1)?.type === 'message' && (before.at(-1) as { role?: string }).role === 'assistant';
      const settled = isGrowing ? prefix.slice(0, -1) : prefix;
      expect(JSON.stringify(longer.slice(0, settled.length))).toBe(JSON.stringify(settled));
    };
    fc.assert(fc.property(sequence, sequence, check), { numRuns: 500 });
  });

  test('is not changed by being read', () => {
    const check = (records: TranscriptRecord[]): void => {
      const before = JSON.stringify(records);
      toWireMessages(records);
      expect(JSON.stringify(records)).toBe(before);
    };
    fc.assert(fc.property(sequence, check), { numRuns: 300 });
  });
});

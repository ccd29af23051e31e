import { describe, expect, test } from 'vitest';
import type { ModelRequest } from '../../src/model/model.ts';
import { toParams } from '../../src/model/request.ts';
import { toWireMessages } from '../../src/store/messages.ts';
import { replyRecord, result, text, use, userRecord } from '../store/message-records.ts';

const MARK = { cache_control: { type: 'ephemeral' } };

const RECORDS = [
  userRecord(1, [text('one')]),
  replyRecord(1, [use('a'), use('b')]),
  userRecord(2, [result('a'), result('b')]),
  replyRecord(2, [use('c')]),
  userRecord(3, [result('c'), text('hurry')]),
];

function requestOf(count: number, more: Partial<ModelRequest> = {}): ModelRequest {
  const tools = ['read', 'bash'].map((name) => ({ name, description: `${name}s`, input_schema: { type: 'object' } }));
  const messages = toWireMessages(RECORDS.slice(0, count));
  return { model: 'm', system: 'You are errand.', tools, messages, maxTokens: 50, ...more };
}

function withoutMarks(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, item: unknown) => (key === 'cache_control' ? undefined : item));
}

function countMarks(value: unknown): number {
  return JSON.stringify(value).split('"cache_control"').length - 1;
}

describe('cache marks', () => {
  test('are on the system prompt, the last tool, and the last block of the last two user messages', () => {
    const { system, tools, messages } = toParams(requestOf(5));
    expect(system).toEqual([{ type: 'text', text: 'You are errand.', ...MARK }]);
    expect(tools?.map((tool) => 'cache_control' in tool)).toEqual([false, true]);
    expect(messages[2]?.content.at(-1)).toEqual({ ...result('b'), ...MARK });
    expect(messages[4]?.content.at(-1)).toEqual({ ...text('hurry'), ...MARK });
    expect(countMarks(toParams(requestOf(5)))).toBe(4);
  });

  test('change no byte of what they mark: each request begins with the one before', () => {
    const requests = [1, 3, 5].map((count) => toParams(requestOf(count)));
    for (const [index, request] of requests.entries()) {
      const next = requests[index + 1];
      if (!next) continue;
      const { messages, ...head } = request;
      const { messages: more, ...nextHead } = next;
      expect(JSON.stringify(nextHead)).toBe(JSON.stringify(head));
      expect(withoutMarks(more.slice(0, messages.length))).toEqual(withoutMarks(messages));
    }
  });

  test('that came with a block are not sent', () => {
    const messages = [{ role: 'user' as const, content: [1, 2, 3, 4, 5].map((n) => ({ ...text(`${n}`), ...MARK })) }];
    expect(countMarks(toParams(requestOf(1, { messages })))).toBe(3);
  });
});

test('a request is not changed by being sent', () => {
  const request = requestOf(5);
  const before = JSON.stringify(request);
  toParams(request);
  expect(JSON.stringify(request)).toBe(before);
});

test('a last turn keeps its tools and forbids their use', () => {
  const params = toParams(requestOf(5, { toolChoice: 'none' }));
  expect(params.tool_choice).toEqual({ type: 'none' });
  expect(params.tools).toEqual(toParams(requestOf(5)).tools);
  expect(toParams(requestOf(5)).tool_choice).toBeUndefined();
});

test('without tools no choice is sent, but calls of before still have a tool to stand on', () => {
  expect(toParams(requestOf(1, { tools: [], toolChoice: 'none' }))).not.toHaveProperty('tools');
  expect(toParams(requestOf(1, { tools: [], toolChoice: 'none' }))).not.toHaveProperty('tool_choice');
  expect(toParams(requestOf(5, { tools: [] })).tools).toHaveLength(1);
});

test('white space at the end of a final assistant message is cut, and only there', () => {
  const messages = [
    { role: 'user' as const, content: [text('go ')] },
    { role: 'assistant' as const, content: [text('one \n'), text('two \n')] },
  ];
  expect(toParams(requestOf(1, { messages })).messages[1]?.content).toEqual([text('one \n'), text('two')]);
});

test('an empty system prompt is left out, a broken one made whole', () => {
  expect(toParams(requestOf(1, { system: ' ' }))).not.toHaveProperty('system');
  expect(JSON.stringify(toParams(requestOf(1, { system: 'a\ud83d' })).system)).toContain('a\uFFFD');
});

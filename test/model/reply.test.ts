import { describe, expect, test } from 'vitest';
import { cleanContent, cutToolUseId, rawInputOf } from '../../src/model/reply.ts';
import { text, use } from '../store/message-records.ts';

const THINKING = { type: 'thinking', thinking: 'hm', signature: 'sig' };

describe('what is kept of an answer', () => {
  test.each([
    ['blank text beside a call goes', [text(' '), use('a')], [use('a')]],
    ['nothing at all gets a placeholder', [], [text('(no text)')]],
    ['blank text alone gets a placeholder', [text('')], [text('(no text)')]],
    ['unsigned thinking goes', [{ type: 'thinking', thinking: 'x' }, text('y')], [text('y')]],
    ['thinking alone is followed by a placeholder', [THINKING], [THINKING, text('(no text)')]],
    ['an input that is no object is kept as text', [use('a', 'read', [1])], [use('a', 'read', { __raw: '[1]' })]],
    ['a missing input is an empty one', [{ type: 'tool_use', id: 'a', name: 'read' }], [use('a')]],
    ['a lone surrogate is replaced', [text('a\ud83d')], [text('a\uFFFD')]],
    ['a NUL in an input stays', [use('a', 'write', { content: 'a\0' })], [use('a', 'write', { content: 'a\0' })]],
  ])('%s', (_fact, content, kept) => {
    expect(cleanContent(content)).toEqual(kept);
  });
});

test('only an input that is nothing but raw text counts as unreadable', () => {
  expect(rawInputOf({ __raw: '{"a' })).toBe('{"a');
  expect(rawInputOf({ __raw: 'x', path: 'y' })).toBeUndefined();
  expect(rawInputOf({ path: 'y' })).toBeUndefined();
});

test('a call at the end of an answer that hit a limit is cut, though its JSON parses', () => {
  const content = [use('a'), use('b')];
  expect(cutToolUseId({ stop: 'max_tokens', content })).toBe('b');
  expect(cutToolUseId({ stop: 'model_context_window_exceeded', content })).toBe('b');
  expect(cutToolUseId({ stop: 'tool_use', content })).toBeUndefined();
  expect(cutToolUseId({ stop: 'max_tokens', content: [use('a'), text('x')] })).toBeUndefined();
});

import { describe, expect, it } from 'vitest';
import { signThinking, toRedactedData } from '../../src/simulator/signature.ts';
import { validate } from '../../src/simulator/validate.ts';
import { HEADERS, READ_TOOL } from './requests.ts';

type Body = Record<string, unknown>;

const base: Body = { model: 'sim-1', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
const ask = (...more: unknown[]): Body => ({
  ...base,
  tools: [READ_TOOL],
  messages: [{ role: 'user', content: 'hi' }, ...more],
});
const use = (id: string, fields: Body = {}): Body => ({ type: 'tool_use', id, name: 'read', input: {}, ...fields });
const result = (id: string, fields: Body = {}): Body => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'x',
  ...fields,
});
const text = (words: string, fields: Body = {}): Body => ({ type: 'text', text: words, ...fields });
const assistant = (...content: unknown[]): Body => ({ role: 'assistant', content });
const user = (...content: unknown[]): Body => ({ role: 'user', content });
const thought = (words: string, signature = signThinking(words)): Body => ({
  type: 'thinking',
  thinking: words,
  signature,
});
const mark = { cache_control: { type: 'ephemeral' } };
const without = (name: string): Body => ({ ...base, [name]: undefined });
const withTool = (fields: Body): Body => ({ ...base, tools: [{ ...READ_TOOL, ...fields }] });
const thinkingOn = { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 };

interface Row {
  readonly rule: string;
  readonly bad: Body;
  readonly says: RegExp;
  readonly status?: number;
  readonly good?: Body;
}

const rows: Row[] = [
  { rule: 'model is required', bad: without('model'), says: /^model: Field required/ },
  { rule: 'max_tokens is required', bad: without('max_tokens'), says: /^max_tokens: Field required/ },
  { rule: 'messages are required', bad: without('messages'), says: /^messages: Field required/ },
  {
    rule: 'max_tokens is at least 1',
    bad: { ...base, max_tokens: 0 },
    says: /max_tokens.*greater/,
    good: { ...base, max_tokens: 1 },
  },
  {
    rule: 'max_tokens is at most what the model has',
    bad: { ...base, max_tokens: 32_001 },
    says: /32001 > 32000/,
    good: { ...base, max_tokens: 32_000 },
  },
  {
    rule: 'unknown fields are refused',
    bad: { ...base, colour: 1 },
    says: /colour: Extra inputs are not permitted/,
    good: { ...base, metadata: { user_id: 'u' } },
  },
  { rule: 'unknown models are not found', bad: { ...base, model: 'gpt' }, says: /model: gpt/, status: 404 },
  { rule: 'messages are not empty', bad: { ...base, messages: [] }, says: /at least one message/ },
  {
    rule: 'the first message is of the user',
    bad: { ...base, messages: [assistant(text('a'))] },
    says: /first message/,
  },
  {
    rule: 'roles are known',
    bad: ask({ role: 'tool', content: 'x' }),
    says: /messages\.1\.role/,
    good: ask(user(text('more'))),
  },
  {
    rule: 'messages have no other fields',
    bad: ask({ role: 'user', content: 'x', id: 'm1' }),
    says: /messages\.1\.id: Extra/,
  },
  { rule: 'blocks have no other fields', bad: ask(user(text('x', { at: 1 }))), says: /text\.at: Extra/ },
  { rule: 'block types are known', bad: ask(user({ type: 'poem' })), says: /'poem'/ },
  { rule: 'text is not empty', bad: ask(user(text(''))), says: /must be non-empty/, good: ask(user(text('x'))) },
  { rule: 'text is not blank', bad: ask(user(text(' \n'))), says: /non-whitespace/, good: ask(user(text(' x\n'))) },
  { rule: 'string content is not blank', bad: ask({ role: 'user', content: '  ' }), says: /non-whitespace/ },
  {
    rule: 'text in a result is not empty',
    bad: ask(assistant(use('a')), user(result('a', { content: [text('')] }))),
    says: /tool_result\.content\.0/,
    good: ask(assistant(use('a')), user(result('a', { content: '' }))),
  },
  {
    rule: 'content is not empty',
    bad: ask(user(), user(text('x'))),
    says: /non-empty content/,
    good: ask(assistant()),
  },
  {
    rule: 'the final assistant text has no trailing space',
    bad: ask(assistant(text('so '))),
    says: /trailing whitespace/,
    good: ask(assistant(text('so'))),
  },
  {
    rule: 'calls have results',
    bad: ask(assistant(use('a')), user(text('x'))),
    says: /without `tool_result`.*: a\./,
    good: ask(assistant(use('a')), user(result('a'))),
  },
  {
    rule: 'calls have results in the next message',
    bad: ask(assistant(use('a')), user(text('x')), assistant(text('y')), user(result('a'))),
    says: /without `tool_result`/,
  },
  { rule: 'a final call has a result', bad: ask(assistant(use('a'))), says: /without `tool_result`/ },
  {
    rule: 'each of several calls has a result',
    bad: ask(assistant(use('a'), use('b')), user(result('a'))),
    says: /: b\./,
    good: ask(assistant(use('a'), use('b')), user(result('b'), result('a'))),
  },
  {
    rule: 'pairing goes over merged messages',
    bad: ask(assistant(use('a')), assistant(use('b')), user(result('a'))),
    says: /: b\./,
    good: ask(assistant(use('a')), assistant(use('b')), user(result('a')), user(result('b'))),
  },
  {
    rule: 'results come first',
    bad: ask(assistant(use('a')), user(text('x'), result('a'))),
    says: /at the start of the next message/,
    good: ask(assistant(use('a')), user(result('a'), text('x'))),
  },
  { rule: 'results have a call', bad: ask(user(result('z'))), says: /unexpected `tool_use_id`.*z/ },
  {
    rule: 'results are given once',
    bad: ask(assistant(use('a')), user(result('a'), result('a'))),
    says: /single result/,
  },
  {
    rule: 'call ids are unique',
    bad: ask(assistant(use('a')), user(result('a')), assistant(use('a')), user(result('a'))),
    says: /must be unique/,
    good: ask(assistant(use('a')), user(result('a')), assistant(use('b')), user(result('b'))),
  },
  {
    rule: 'call ids have no odd characters',
    bad: ask(assistant(use('a b')), user(result('a b'))),
    says: /tool_use\.id/,
    good: ask(assistant(use('a_B-1')), user(result('a_B-1'))),
  },
  {
    rule: 'call names have no odd characters',
    bad: ask(assistant(use('a', { name: 'a.b' })), user(result('a'))),
    says: /tool_use\.name/,
  },
  {
    rule: 'call inputs are objects',
    bad: ask(assistant(use('a', { input: '{}' })), user(result('a'))),
    says: /valid dictionary/,
  },
  { rule: 'calls are of the assistant', bad: ask(user(use('a'))), says: /only be in `assistant`/ },
  { rule: 'results are of the user', bad: ask(assistant(result('a'))), says: /only be in `user`/ },
  {
    rule: 'text is valid Unicode',
    bad: ask(user(text('\ud83d'))),
    says: /lone surrogate/,
    good: ask(user(text('😀'))),
  },
  {
    rule: 'call inputs are valid Unicode',
    bad: ask(assistant(use('a', { input: { x: '\udc00' } })), user(result('a'))),
    says: /lone surrogate/,
  },
  { rule: 'NUL is refused', bad: ask(user(text('a\u0000b'))), says: /U\+0000/ },
  {
    rule: 'thinking is unchanged',
    bad: ask(assistant(thought('b', signThinking('a')), text('x')), user(text('y'))),
    says: /Invalid `signature`/,
    good: ask(assistant(thought('a'), text('x')), user(text('y'))),
  },
  {
    rule: 'redacted thinking is unchanged',
    bad: ask(assistant({ type: 'redacted_thinking', data: 'abc' }, text('x'))),
    says: /Invalid `data`/,
    good: ask(assistant({ type: 'redacted_thinking', data: toRedactedData('a') }, text('x'))),
  },
  {
    rule: 'thinking comes first',
    bad: ask(assistant(text('x'), thought('a'), use('a')), user(result('a'))),
    says: /before all other blocks/,
    good: ask(assistant(thought('a'), text('x'), use('a')), user(result('a'))),
  },
  {
    rule: 'thinking of the tool loop is not dropped',
    bad: { ...ask(assistant(use('toolu_t1')), user(result('toolu_t1'))), ...thinkingOn },
    says: /must start with its thinking/,
    good: { ...ask(assistant(thought('a'), use('toolu_t1')), user(result('toolu_t1'))), ...thinkingOn },
  },
  {
    rule: 'the thinking budget fits',
    bad: { ...base, ...thinkingOn, max_tokens: 1024 },
    says: /must be greater than/,
    good: { ...base, ...thinkingOn },
  },
  {
    rule: 'thinking and forced tools exclude each other',
    bad: { ...ask(), ...thinkingOn, tool_choice: { type: 'any' } },
    says: /forces tool use/,
  },
  {
    rule: 'tool names have no odd characters',
    bad: withTool({ name: 'a b' }),
    says: /tools\.0\.custom\.name/,
    good: withTool({ name: 'a_b-C' }),
  },
  {
    rule: 'tool names are short',
    bad: withTool({ name: 'a'.repeat(129) }),
    says: /custom\.name/,
    good: withTool({ name: 'a'.repeat(128) }),
  },
  { rule: 'tool names are unique', bad: { ...base, tools: [READ_TOOL, READ_TOOL] }, says: /must be unique/ },
  { rule: 'tools have a schema', bad: withTool({ input_schema: undefined }), says: /input_schema: Field required/ },
  {
    rule: 'tool schemas are of objects',
    bad: withTool({ input_schema: { type: 'array' } }),
    says: /should be 'object'/,
  },
  { rule: 'tools have no other fields', bad: withTool({ kind: 'x' }), says: /kind: Extra/ },
  {
    rule: 'tool_choice names a known tool',
    bad: { ...ask(), tool_choice: { type: 'tool', name: 'nope' } },
    says: /'nope' not found/,
    good: { ...ask(), tool_choice: { type: 'tool', name: 'read' } },
  },
  { rule: 'tool_choice needs tools', bad: { ...base, tool_choice: { type: 'auto' } }, says: /while providing tools/ },
  {
    rule: 'tool blocks need tools',
    bad: { ...ask(assistant(use('a')), user(result('a'))), tools: undefined },
    says: /must define tools/,
  },
  {
    rule: 'there are at most four cache marks',
    bad: ask(user(...['a', 'b', 'c', 'd', 'e'].map((word) => text(word, mark)))),
    says: /maximum of 4.*Found 5/,
    good: ask(user(...['a', 'b', 'c', 'd'].map((word) => text(word, mark)))),
  },
  {
    rule: 'the mark of the whole request counts',
    bad: { ...ask(user(...['a', 'b', 'c', 'd'].map((word) => text(word, mark)))), ...mark },
    says: /Found 5/,
  },
  {
    rule: 'cache marks are well formed',
    bad: ask(user(text('a', { cache_control: { type: 'eternal' } }))),
    says: /ephemeral/,
  },
  {
    rule: 'system text is not empty',
    bad: { ...base, system: [text('')] },
    says: /system\.0/,
    good: { ...base, system: [text('x')] },
  },
  {
    rule: 'the prompt fits the window',
    bad: { ...base, model: 'sim-small', messages: [user(text('x'.repeat(80_001)))] },
    says: /prompt is too long: \d+ tokens > 20000/,
    good: { ...base, messages: [user(text('x'.repeat(80_001)))] },
  },
];

describe('validate', () => {
  it.each(rows)('$rule', ({ bad, says, status = 400, good = base }) => {
    const problem = validate({ headers: HEADERS, body: JSON.parse(JSON.stringify(bad)) });
    expect(problem?.message).toMatch(says);
    expect(problem?.status).toBe(status);
    expect(validate({ headers: HEADERS, body: JSON.parse(JSON.stringify(good)) })).toBeUndefined();
  });

  it.each([
    { rule: 'a key is required', headers: { ...HEADERS, 'x-api-key': '' }, status: 401 },
    { rule: 'a version is required', headers: { 'x-api-key': 'any' }, status: 400 },
    {
      rule: 'a bearer key is as good',
      headers: { authorization: 'Bearer any', 'anthropic-version': 'x' },
      status: undefined,
    },
    { rule: 'the key must match', headers: HEADERS, apiKey: 'other', status: 401 },
    { rule: 'the matching key is let in', headers: HEADERS, apiKey: 'any', status: undefined },
    { rule: 'a body over 32 MB is too large', headers: HEADERS, bodyBytes: 32 * 1024 * 1024 + 1, status: 413 },
    { rule: 'a body of 32 MB is not', headers: HEADERS, bodyBytes: 32 * 1024 * 1024, status: undefined },
  ])('$rule', ({ status, ...request }) => {
    expect(validate({ body: base, ...request })?.status).toBe(status);
  });
});

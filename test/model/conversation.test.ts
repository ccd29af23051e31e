import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createModelClient } from '../../src/model/client.ts';
import { ModelError } from '../../src/model/model.ts';
import type { ModelReply } from '../../src/model/model.ts';
import { cutToolUseId, rawInputOf } from '../../src/model/reply.ts';
import { toParams } from '../../src/model/request.ts';
import { call, say, startSimulator, toMarker, toScriptPrompt, validate } from '../../src/simulator/index.ts';
import type { Fault, Simulator } from '../../src/simulator/index.ts';
import { toWireMessages } from '../../src/store/messages.ts';
import type { ContentBlock, TranscriptRecord } from '../../src/store/records.ts';
import { replyRecord, result, text, use, userRecord } from '../store/message-records.ts';

const TOOLS = ['read', 'write', 'bash'].map((name) => ({
  name,
  description: `${name}s`,
  input_schema: { type: 'object', properties: {} },
}));

let simulator: Simulator;

beforeAll(async () => {
  simulator = await startSimulator();
});

afterAll(() => simulator.close());

/** Sends what a transcript says. */
async function send(records: readonly TranscriptRecord[], idleTimeoutMs = 5000): Promise<ModelReply> {
  const client = createModelClient({ apiKey: 'any', baseUrl: simulator.url, idleTimeoutMs });
  const messages = toWireMessages(records, { model: 'sim-1' });
  const request = { model: 'sim-1', system: 'You are errand.', tools: TOOLS, messages, maxTokens: 1000 };
  return client.send(request, { signal: AbortSignal.timeout(10_000) });
}

/** The loop in short: every call gets a result, until an answer has none. */
async function converse(prompt: string): Promise<ModelReply[]> {
  const records: TranscriptRecord[] = [userRecord(1, [text(prompt)])];
  const replies: ModelReply[] = [];
  for (let turn = 1; turn < 10; turn++) {
    const reply = await send(records);
    replies.push(reply);
    const uses = reply.content.filter((block) => block.type === 'tool_use');
    records.push(replyRecord(turn, reply.content, { stop: reply.stop, model: reply.model }));
    if (uses.length === 0) break;
    records.push(
      userRecord(
        turn + 1,
        uses.map(({ id }) => result(String(id), 'fine')),
      ),
    );
  }
  return replies;
}

test('thinking, open and redacted, goes back as it came', async () => {
  const replies = await converse(toMarker('thinking'));
  expect(replies.map(({ content }) => content[0]?.type)).toEqual(['thinking', 'redacted_thinking', 'thinking']);
});

test('each turn reads from the cache what the turn before wrote', async () => {
  const long = 'word '.repeat(400);
  const steps = [1, 2, 3].map((n) => call('bash', { command: `echo ${n} ${long}` })).concat(say('done'));
  const replies = await converse(toScriptPrompt(steps, long));
  const usages = replies.map(({ usage }) => usage);
  usages.slice(1).forEach((usage, index) => {
    const before = usages[index];
    expect(usage.cacheReadTokens).toBe((before?.cacheReadTokens ?? 0) + (before?.cacheWriteTokens ?? 0));
    expect(usage.inputTokens).toBe(0);
  });
});

test('a call cut by the output limit is known as cut and its conversation can go on', async () => {
  const prompt = userRecord(1, [text(toMarker('stop-reason', { reason: 'max_tokens', within: 'write' }))]);
  const reply = await send([prompt]);
  const cut = reply.content.find((block) => block.type === 'tool_use');
  expect(cutToolUseId(reply)).toBe(cut?.['id']);
  expect(rawInputOf(cut?.['input'])).toContain('the first half of');
  const next = await send([
    prompt,
    replyRecord(1, reply.content),
    userRecord(2, [result(String(cut?.['id']), 'cut', true)]),
  ]);
  expect(next.stop).toBe('end_turn');
});

test('an empty text block does not come back to haunt the next turn', async () => {
  const replies = await converse(toScriptPrompt([{ ...call('bash', { command: 'x' }), text: '' }, say('done')]));
  expect(replies.at(-1)?.content).toMatchObject([text('done')]);
});

describe('a fault', () => {
  test.each<[string, Fault, Partial<ModelError>]>([
    ['429', { status: 429, retryAfter: 7 }, { kind: 'rate_limited', retryAfterMs: 7000, isSettled: true }],
    ['529', { status: 529 }, { kind: 'overloaded', isSettled: true }],
    ['an overloaded stream', { errorEvent: 'overloaded_error' }, { kind: 'overloaded', isSettled: false }],
    ['a cut at the start', { cut: 'message_start' }, { kind: 'cut', isSettled: false }],
    ['a cut before the end', { cut: 'message_delta' }, { kind: 'cut', isSettled: false }],
    ['silence', { silence: 'text' }, { kind: 'idle', isSettled: false }],
  ])('of %s is told for what it is, within what was served', async (_what, fault, facts) => {
    const records = [userRecord(1, [text(toScriptPrompt([say('some words to cut', { fault })]))])];
    const error = await send(records, 150).catch((thrown: unknown) => thrown);
    if (!(error instanceof ModelError)) throw new Error('the fault did not fail the request', { cause: error });
    expect(error).toMatchObject(facts);
    await vi.waitFor(() => expect(simulator.ledger().at(-1)?.outcome).not.toBe('open'), { interval: 5 });
    const served = simulator.ledger().at(-1)?.usage;
    expect(error.seen.outputTokensMin).toBeLessThanOrEqual(served?.output_tokens ?? 0);
    expect(error.isSettled ? served?.output_tokens : 0).toBe(0);
  });
});

test('any transcript makes a request that the strict server takes', () => {
  const id = fc.constantFrom('a', 'b', 'toolu_1', '', 'b ad');
  const words = fc.constantFrom('', ' ', 'ok', '\ud83d', 'a\0b', 'end \n');
  const block: fc.Arbitrary<ContentBlock> = fc.oneof(
    words.map(text),
    fc.tuple(id, fc.constantFrom('read', 'no way', ''), fc.jsonValue()).map((args) => use(...args)),
    fc
      .tuple(id, fc.oneof(words, fc.array(words.map(text), { maxLength: 2 })), fc.boolean())
      .map((args) => result(...args)),
    fc.constant({ type: 'thinking', thinking: 'unsigned' }),
  );
  const record = fc
    .tuple(fc.boolean(), fc.array(block, { maxLength: 5 }))
    .map(([isUser, blocks]) => (isUser ? userRecord(1, blocks) : replyRecord(1, blocks)));
  const check = (records: TranscriptRecord[], choice: 'auto' | 'none', tools: typeof TOOLS): void => {
    const messages = toWireMessages(records);
    const request = { model: 'sim-1', system: 's\udc00', tools, messages, maxTokens: 10, toolChoice: choice };
    const headers = { authorization: 'Bearer x', 'anthropic-version': '2026-10-21' };
    expect(validate({ headers, body: JSON.parse(JSON.stringify(toParams(request))) })).toBeUndefined();
  };
  const sequence = fc.array(record, { minLength: 1, maxLength: 8 });
  fc.assert(fc.property(sequence, fc.constantFrom('auto', 'none'), fc.constantFrom(TOOLS, []), check), {
    numRuns: 800,
  });
});

import { createHash } from 'node:crypto';
import type { AssistantMessageRecord, TranscriptRecord } from '../../src/store/records.ts';
import { usageOf } from '../../src/store/usage.ts';
import type { Agent } from './agents.ts';
import { doubled, lost, untrue } from './violation.ts';
import type { Done, Violation } from './violation.ts';

/** Promises 3 and 7, and that the transcript says what was really asked. */
export function requestProblems(agent: Agent, kills: readonly Done[]): Violation[] {
  return [
    ...lineProblems(agent),
    ...replyProblems(agent),
    ...billProblems(agent, kills),
    ...attemptProblems(agent),
    ...replayProblems(agent),
    ...wordProblems(agent),
  ];
}

/** Nothing is written again that is there. Readers would pass it over, and nobody would know. */
function lineProblems({ role, lines }: Agent): Violation[] {
  const ids = lines.filter((line) => line !== '').map((line) => (JSON.parse(line) as TranscriptRecord).id);
  return [...new Set(ids)].flatMap((id) => {
    const copies = ids.filter((other) => other === id).length;
    return copies === 1 ? [] : [doubled(`record ${id} of ${role} stands there ${copies} times`)];
  });
}

/** Nothing recorded is asked for again. */
function replyProblems({ role, records, served }: Agent): Violation[] {
  const replies = records.filter((record) => record.type === 'message' && record.role === 'assistant');
  return replies.flatMap((reply) => {
    const turn = 'turn' in reply ? reply.turn : 0;
    const isLater = ({ at }: { readonly at: string }): boolean => Date.parse(at) > Date.parse(reply.at);
    const requests = served.filter((entry) => entry.turn === turn && isLater(entry));
    // With the reply in it, the model server takes a request for one of the next turn.
    const attempts = records.filter((record) => record.type === 'attempt' && record.turn === turn && isLater(record));
    return [
      ...requests.map(({ n }) => doubled(`reply ${turn} of ${role} was recorded and asked for again (request ${n})`)),
      ...attempts.map(({ id }) => doubled(`reply ${turn} of ${role} was recorded and asked for again (${id})`)),
    ];
  });
}

/** Promise 7: what was served is what was settled, plus the unsettled attempts within their bounds. */
function billProblems({ role, records, served }: Agent, kills: readonly Done[]): Violation[] {
  const { own, unsettled } = usageOf(records);
  const input = sum(
    served,
    ({ usage }) => usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
  );
  const output = sum(served, ({ usage }) => usage.output_tokens);
  const ownInput = own.inputTokens + own.cacheReadTokens + own.cacheWriteTokens;
  const mostInput = ownInput + sum(unsettled, (one) => one.inputTokensMax - one.inputTokensMin);
  const mostOutput = own.outputTokens + sum(unsettled, (one) => one.outputTokensMax - one.outputTokensMin);
  const isWithin = input >= ownInput && input <= mostInput && output >= own.outputTokens && output <= mostOutput;
  return [
    ...(isWithin
      ? []
      : [
          untrue(
            `the bill of ${role}: served ${input} + ${output}, settled ${ownInput} + ${own.outputTokens}, ` +
              `at most ${mostInput} + ${mostOutput}`,
          ),
        ]),
    ...unsettledProblems(role, records, kills),
  ];
}

/** An agent has one model call at a time: each unsettled attempt needs a kill of its own before the next one. */
function unsettledProblems(role: string, records: readonly TranscriptRecord[], kills: readonly Done[]): Violation[] {
  const attempts = records.filter((record) => record.type === 'attempt');
  const unused = new Set(kills);
  return usageOf(records).unsettled.flatMap(({ turn, attempt }) => {
    const index = attempts.findIndex((record) => record.turn === turn && record.attempt === attempt);
    const from = Date.parse(attempts[index]?.at ?? '');
    const to = Date.parse(attempts[index + 1]?.at ?? records.at(-1)?.at ?? '');
    const cause = [...unused].find(({ atMs, untilMs }) => untilMs >= from - CLOCK_MS && atMs <= to);
    if (cause) unused.delete(cause);
    return cause ? [] : [untrue(`attempt ${attempt} of turn ${turn} of ${role} is unsettled without a kill`)];
  });
}

/** Between a death and the moment it is noted. */
const CLOCK_MS = 100;

/** Every request is in the transcript as an attempt of its own from before it left, and none is open any more. */
function attemptProblems({ role, records, served }: Agent): Violation[] {
  const unused = new Set(records.filter((record) => record.type === 'attempt'));
  return served.flatMap(({ n, at, turn, messages, outcome }) => {
    const sha256 = createHash('sha256')
      .update(JSON.stringify(withoutMarks(messages)))
      .digest('hex');
    const attempt = [...unused].find(
      (record) => record.requestSha256 === sha256 && Date.parse(record.at) <= Date.parse(at),
    );
    if (attempt) unused.delete(attempt);
    return [
      ...(attempt ? [] : [untrue(`request ${n}, turn ${turn} of ${role}, was sent without a record of it`)]),
      ...(outcome === 'open' ? [lost(`request ${n}, turn ${turn} of ${role}, was never aborted`)] : []),
    ];
  });
}

/**
 * The transcript gives, message for message, what the model server received. Read line by line, with nothing of what
 * the product makes requests with: an error there would be on both sides.
 */
function replayProblems({ role, records, served }: Agent): Violation[] {
  const received = new Set(served.map(({ messages }) => JSON.stringify(withoutMarks(messages))));
  const messages = records.filter((record) => record.type === 'message');
  return messages.filter(isReply).flatMap((reply) => {
    const sent = JSON.stringify(joined(messages.slice(0, messages.indexOf(reply))));
    return received.has(sent) ? [] : [untrue(`turn ${reply.turn} of ${role} replays to a request that nobody sent`)];
  });
}

interface Said {
  readonly role: string;
  readonly content: readonly unknown[];
}

/** Neighbours of one role are one message. */
function joined(messages: readonly Said[]): Said[] {
  return messages.reduce<Said[]>((all, { role, content }) => {
    const last = all.at(-1);
    if (last?.role !== role) return [...all, { role, content }];
    return [...all.slice(0, -1), { role, content: [...last.content, ...content] }];
  }, []);
}

/** What is recorded of a reply is what the model server said, word for word and call for call. */
function wordProblems({ role, records, said }: Agent): Violation[] {
  return records.filter(isReply).flatMap(({ turn, content }) => {
    const { text = '', calls = [] } = said(turn) ?? {};
    const recorded = content.map((block) => (block.type === 'text' ? block.text : [block.name, block.input]));
    const right = [text, ...calls.map(({ name, input }) => [name, input])];
    if (JSON.stringify(recorded) === JSON.stringify(right)) return [];
    return [lost(`reply ${turn} of ${role} is ${JSON.stringify(recorded).slice(0, 200)}`)];
  });
}

function isReply(record: TranscriptRecord): record is AssistantMessageRecord {
  return record.type === 'message' && record.role === 'assistant';
}

/** Cache marks move with every request; they are no part of the conversation. */
function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => name !== 'cache_control');
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutMarks(inner)]));
}

function sum<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((total, item) => total + of(item), 0);
}

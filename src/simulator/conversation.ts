import { omit, sha256 } from './json.ts';
import { readMarker, readTurnMarker, toTurnMarker } from './marker.ts';
import type { Marker } from './marker.ts';
import type { CallResult, Step, View } from './scenario.ts';
import { blocksOf, textOf } from './wire.ts';
import type { Block, Message, RequestBody } from './wire.ts';

/** Where the scenario of a request begins: at the last user message that carries a marker, else at the first message. */
interface Start {
  readonly marker: Marker | undefined;
  readonly index: number;
}

export interface Conversation {
  readonly view: View;
  readonly marker: Marker | undefined;
}

/**
 * Reads a request into what a scenario sees. The latest marker in a user message counts, so that a continued run and
 * a forked sub-agent can be given a scenario of their own; a reported sub-agent result is not a prompt and is skipped.
 */
export function readConversation(body: RequestBody, fallback: string): Conversation {
  const start = findStart(body.messages);
  const results = readResults(body.messages);
  const system = blocksOf(body.system).map(textOf).join('\n');
  const view: View = {
    scenario: start.marker?.name ?? fallback,
    args: start.marker?.args ?? {},
    turn: countTurns(body.messages, start.index) + 1,
    key: conversationKey(body.messages, start, system),
    model: body.model,
    maxTokens: body.max_tokens,
    messages: body.messages,
    results: results.flat(),
    lastResults: body.messages.at(-1)?.role === 'user' ? lastRun(body.messages, results) : [],
    system,
    tools: (body.tools ?? []).map((tool) => tool.name),
    toolChoice: body.tool_choice?.type ?? 'auto',
    lastUserText: lastUserText(body.messages),
  };
  return { view, marker: start.marker };
}

/** A request to sum up the conversation: no calls possible, and the last words ask for a summary. */
export function isSummaryRequest(view: View): boolean {
  return !mayCall(view) && view.turn > 1 && /\bsummar(y|ies|i[sz]e)/i.test(view.lastUserText);
}

/**
 * The answer to it: how far the work has come, in words and for the turn count. `summary=` in the marker makes it go
 * wrong: `empty` has no content, `long` is longer than what it sums up may be, `fail` fails the first time.
 */
export function toSummary(view: View): Step {
  const text = `Summary: ${view.turn - 1} turns of the work are done. ${toTurnMarker(view.turn - 1)}`;
  switch (view.args.summary) {
    case 'empty':
      return {};
    case 'long':
      return { text: `${text} ${'And so on and on. '.repeat(LONG_SUMMARY_SENTENCES)}`.trim(), stopReason: 'end_turn' };
    case 'fail':
      return { text, fault: { status: 500, times: 1 } };
    default:
      return { text };
  }
}

const LONG_SUMMARY_SENTENCES = 4000;

/** As a real model, the simulator never calls a tool when none may be called: the step's words remain. */
export function withoutForbiddenCalls(step: Step, view: View): Step {
  if (mayCall(view) || !step.calls?.length) return step;
  const words = step.text ?? '';
  const stopped = `I have to stop here, after ${view.turn - 1} turns; the work is not finished.`;
  return { ...omit(step, 'calls', 'stopReason'), text: words === '' ? stopped : words };
}

function mayCall(view: View): boolean {
  return view.toolChoice !== 'none' && view.tools.length > 0;
}

function findStart(messages: readonly Message[]): Start {
  for (let index = messages.length - 1; index >= 0; index--) {
    const marker = markerOf(messages[index]);
    if (marker) return { marker, index };
  }
  return { marker: undefined, index: 0 };
}

function markerOf(message: Message | undefined): Marker | undefined {
  if (message?.role !== 'user') return undefined;
  for (const block of blocksOf(message.content)) {
    const text = textOf(block);
    const marker = text.trimStart().startsWith('[Agent:') ? undefined : readMarker(text);
    if (marker) return marker;
  }
  return undefined;
}

function countTurns(messages: readonly Message[], start: number): number {
  let turns = 0;
  for (const message of messages.slice(start)) {
    if (message.role === 'assistant') turns++;
    const summed = blocksOf(message.content)
      .map(textOf)
      .map(readTurnMarker)
      .findLast((turn) => turn !== undefined);
    if (summed !== undefined) turns = message.role === 'assistant' ? summed + 1 : summed;
  }
  return turns;
}

function conversationKey(messages: readonly Message[], start: Start, system: string): string {
  const first = blocksOf(messages[0]?.content).map(textOf).join('\n');
  return sha256(JSON.stringify([system, first, start.marker?.source, start.index]));
}

/** Results of each message, with the calls they answer. */
function readResults(messages: readonly Message[]): CallResult[][] {
  const uses = new Map<string, Block>();
  return messages.map((message) =>
    blocksOf(message.content).flatMap((block) => {
      if (block.type === 'tool_use') uses.set(String(block.id), block);
      return block.type === 'tool_result' ? [toResult(block, uses.get(String(block.tool_use_id)))] : [];
    }),
  );
}

function toResult(block: Block, use: Block | undefined): CallResult {
  return {
    toolUseId: String(block.tool_use_id),
    name: String(use?.name),
    input: use?.input,
    text: blocksOf(block.content as Message['content'] | undefined)
      .map(textOf)
      .join('\n'),
    isError: block.is_error === true,
  };
}

/** Consecutive user messages count as one. */
function lastRun(messages: readonly Message[], results: readonly CallResult[][]): CallResult[] {
  const before = messages.findLastIndex((message) => message.role !== 'user');
  return results.slice(before + 1).flat();
}

function lastUserText(messages: readonly Message[]): string {
  for (const message of messages.toReversed()) {
    const text = message.role === 'user' ? blocksOf(message.content).map(textOf).filter(Boolean).join('\n') : '';
    if (text) return text;
  }
  return '';
}

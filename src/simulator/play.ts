import type { ServerResponse } from 'node:http';
import { createBodyWriter } from './body-writer.ts';
import type { BodyWriter } from './body-writer.ts';
import { PING, toErrorEvent, toEvents, toEventText } from './events.ts';
import type { StreamEvent } from './events.ts';
import { faultError, toErrorBody, toRetryAfter } from './faults.ts';
import type { Ending } from './ledger.ts';
import { outputTokens, toMessage } from './reply.ts';
import type { Reply } from './reply.ts';
import type { Anchor, Fault } from './scenario.ts';
import { NO_USAGE } from './wire.ts';
import type { Usage } from './wire.ts';

export interface Performance {
  readonly response: ServerResponse;
  readonly reply: Reply;
  readonly fault: Fault;
  readonly isStream: boolean;
  readonly requestId: string;
  /** Called when the model has begun to answer. */
  readonly onBegin: () => void;
}

/** Sends a reply with its fault; returns how it ended and what was served. */
export async function play(performance: Performance): Promise<Ending> {
  const { response, fault, isStream } = performance;
  const body = createBodyWriter(response, typeof fault.cut === 'number' ? fault.cut : undefined);
  if (!(await body.wait(fault.delayMs ?? 0))) return { outcome: 'cut', status: 0 };
  if (fault.cut === 0) {
    body.cut();
    return { outcome: 'cut', status: 0 };
  }
  if (fault.status !== undefined) return playStatus(performance, fault.status);
  return isStream ? playStream(performance, body) : playWhole(performance, body);
}

function playStatus({ response, fault, requestId }: Performance, status: number): Ending {
  const { type, message } = faultError(fault, status);
  if (fault.retryAfter !== undefined) response.setHeader('retry-after', toRetryAfter(fault.retryAfter));
  sendJson(response, status, toErrorBody(type, message, requestId));
  return { outcome: 'error', status, errorType: type };
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function playStream(performance: Performance, body: BodyWriter): Promise<Ending> {
  const { response, reply, fault } = performance;
  const trouble = toTrouble(fault);
  let sent: number | undefined;
  const cutEnding = (): Ending => ({ outcome: 'cut', status: 200, usage: servedUsage(reply, sent) });
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  for (const event of toEvents(reply)) {
    if (!(await body.wait(fault.betweenMs ?? 0))) return cutEnding();
    if (sent === undefined) performance.onBegin();
    sent = (sent ?? 0) + event.output;
    if (!(await body.write(toEventText(event)))) return isLast(event) ? completeEnding(reply) : cutEnding();
    if (trouble && isAt(event, trouble.at)) return makeTrouble(trouble, performance, body, cutEnding());
  }
  response.end();
  return completeEnding(reply);
}

/** Something that ends a stream early: right after the first event at its place. */
interface Trouble {
  readonly kind: 'cut' | 'silence' | 'error';
  readonly at: Anchor;
}

function toTrouble({ cut, silence, errorEvent, errorAt = 'text' }: Fault): Trouble | undefined {
  if (typeof cut === 'string') return { kind: 'cut', at: cut };
  if (silence !== undefined) return { kind: 'silence', at: silence };
  return errorEvent === undefined ? undefined : { kind: 'error', at: errorAt };
}

/** A reply without such a place (no text, say) has its trouble before message_stop, never none at all. */
function isAt(event: StreamEvent, anchor: Anchor): boolean {
  return event.anchor !== undefined && (event.anchor === anchor || event.anchor === 'message_delta');
}

async function makeTrouble(
  trouble: Trouble,
  { fault, response }: Performance,
  body: BodyWriter,
  cutEnding: Ending,
): Promise<Ending> {
  if (trouble.kind === 'error') {
    const type = fault.errorEvent ?? 'overloaded_error';
    await body.write(toEventText(toErrorEvent(type, fault.message ?? `${type} on demand`)));
    response.end();
    return { ...cutEnding, outcome: 'error', errorType: type };
  }
  if (trouble.kind === 'silence') {
    await body.write(toEventText(PING));
    await body.untilGone();
  }
  body.cut();
  return cutEnding;
}

async function playWhole(performance: Performance, body: BodyWriter): Promise<Ending> {
  const { response, reply, fault } = performance;
  const text = JSON.stringify(toMessage(reply));
  const trouble = toTrouble(fault);
  performance.onBegin();
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  const isOpen = await body.write(trouble ? text.slice(0, text.length / 2) : text);
  if (isOpen && trouble?.kind === 'silence') await body.untilGone();
  if (trouble) body.cut();
  if (trouble || !isOpen) return { outcome: 'cut', status: 200, usage: servedUsage(reply, 0) };
  response.end();
  return completeEnding(reply);
}

function completeEnding(reply: Reply): Ending {
  return { outcome: 'complete', status: 200, stopReason: reply.stopReason, usage: reply.usage };
}

/** What a broken stream cost: nothing before it began, then the whole input and the output that was sent. */
function servedUsage(reply: Reply, sent: number | undefined): Usage {
  return sent === undefined ? NO_USAGE : { ...reply.usage, output_tokens: outputTokens(sent) };
}

function isLast(event: StreamEvent): boolean {
  return event.data.type === 'message_stop';
}

import { Stream } from '@anthropic-ai/sdk/streaming';
import { isObject } from '../store/blocks.ts';
import { StreamProblem } from './accumulator.ts';
import type { StreamEvent } from './accumulator.ts';
import type { Watch } from './watch.ts';

/**
 * Events of a response as they come, pings included (the SDK's own reader hides them, and with them the difference
 * between a server that is busy and one that is gone). Leaving the loop closes the connection.
 */
export async function* readEvents(response: Response, watch: Watch): AsyncGenerator<StreamEvent, void> {
  for await (const { data } of Stream.rawEvents(withNoted(response, watch))) {
    if (data === '') continue;
    const event = parseEvent(data);
    if (event.type !== 'ping') watch.noteProgress();
    yield event;
  }
}

/** Why a response that began well cannot be a stream of events. */
export function responseProblem(response: Response): string | undefined {
  const type = response.headers.get('content-type');
  if (type === null || type.includes('text/event-stream')) return undefined;
  return `with ${type.slice(0, 60)} instead of an event stream`;
}

/** Counts comments that proxies send to keep a connection open, too: they are bytes. */
function withNoted(response: Response, watch: Watch): Response {
  const noting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      watch.noteBytes();
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body?.pipeThrough(noting));
}

function parseEvent(data: string): StreamEvent {
  const event = parseJson(data);
  if (!isObject(event) || typeof event['type'] !== 'string')
    throw new StreamProblem('an event is not JSON with a type');
  return { ...event, type: event['type'] };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

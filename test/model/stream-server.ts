import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

export interface StreamServer {
  readonly url: string;
  readonly requests: Received[];
  /** Requests whose connection is still held. */
  openRequests(): number;
  close(): Promise<void>;
}

export type Answer = (response: ServerResponse, request: Received) => void;

/** A loopback server that answers every request as told. */
export async function startStreamServer(answer: Answer): Promise<StreamServer> {
  const requests: Received[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    open++;
    response.on('close', () => open--);
    void readBody(request).then((body) => {
      const received = { path: request.url ?? '', headers: request.headers, body };
      requests.push(received);
      answer(response, received);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    openRequests: () => open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

export type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

export const PING: Event = { type: 'ping' };

export function messageStart(usage: Record<string, unknown> = {}): Event {
  const counts = { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 3, cache_creation_input_tokens: 2 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm-1', content: [], stop_reason: null };
  return { type: 'message_start', message: { ...message, usage: { ...counts, ...usage } } };
}

export function block(index: number, start: Event, deltas: readonly Event[]): Event[] {
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

export function textBlock(index: number, ...parts: string[]): Event[] {
  return block(
    index,
    { type: 'text', text: '' },
    parts.map((text) => ({ type: 'text_delta', text })),
  );
}

export function toolBlock(index: number, id: string, name: string, ...json: string[]): Event[] {
  const deltas = json.map((part) => ({ type: 'input_json_delta', partial_json: part }));
  return block(index, { type: 'tool_use', id, name, input: {} }, deltas);
}

export function ending(stop: string | null, outputTokens = 7): Event[] {
  const delta = { stop_reason: stop, stop_sequence: null };
  const usage = { output_tokens: outputTokens, input_tokens: null, cache_read_input_tokens: null };
  return [{ type: 'message_delta', delta, usage }, { type: 'message_stop' }];
}

export function openStream(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': 'req_1', ...headers });
  response.flushHeaders();
}

export function write(response: ServerResponse, events: readonly Event[]): void {
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

/** A whole stream. */
export function stream(response: ServerResponse, events: readonly Event[]): void {
  openStream(response);
  write(response, events);
  response.end();
}

export function apiError(
  response: ServerResponse,
  status: number,
  type: string,
  message = 'on demand',
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': 'req_err', ...headers });
  response.end(JSON.stringify({ type: 'error', error: { type, message } }));
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}

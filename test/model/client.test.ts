import { afterEach, describe, expect, test, vi } from 'vitest';
import { createModelClient } from '../../src/model/client.ts';
import type { ModelClientOptions } from '../../src/model/client.ts';
import { ModelError } from '../../src/model/model.ts';
import type { ModelProgress, ModelRequest } from '../../src/model/model.ts';
import {
  PING,
  apiError,
  block,
  ending,
  messageStart,
  openStream,
  startStreamServer,
  stream,
  textBlock,
  toolBlock,
  write,
} from './stream-server.ts';
import type { Answer, Event, StreamServer } from './stream-server.ts';

const KEY = 'sk-very-secret-key-0123456789';

const REQUEST: ModelRequest = {
  model: 'm-1',
  system: 'You are errand.',
  tools: [{ name: 'read', description: 'Reads.', input_schema: { type: 'object', properties: {} } }],
  messages: [{ role: 'user', content: [{ type: 'text', text: 'the secret plan of the conversation' }] }],
  maxTokens: 100,
};

const servers: StreamServer[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  vi.unstubAllEnvs();
});

async function serve(answer: Answer): Promise<StreamServer> {
  const server = await startStreamServer(answer);
  servers.push(server);
  return server;
}

function clientOf(server: { url: string }, options: ModelClientOptions = {}) {
  return createModelClient({ apiKey: KEY, baseUrl: server.url, ...options });
}

async function sendTo(answer: Answer, options: ModelClientOptions = {}, signal = new AbortController().signal) {
  return clientOf(await serve(answer), options).send(REQUEST, { signal });
}

async function failureOf(answer: Answer, options: ModelClientOptions = {}, signal?: AbortSignal): Promise<ModelError> {
  const outcome = await sendTo(answer, options, signal).catch((error: unknown) => error);
  if (!(outcome instanceof ModelError))
    throw new Error(`no ModelError but ${JSON.stringify(outcome)}`, { cause: outcome });
  return outcome;
}

const WHOLE = [messageStart(), PING, ...textBlock(0, 'Hello', ' world'), ...ending('end_turn')];

describe('a whole answer', () => {
  test('comes back with its blocks, counts, cost and request id', async () => {
    const models = { 'm-1': { price: { input: 10, output: 20, cacheRead: 1, cacheWrite: 12.5 } } };
    const reply = await sendTo((response) => stream(response, WHOLE), { models });
    expect(reply).toEqual({
      messageId: 'msg_1',
      model: 'm-1',
      content: [{ type: 'text', text: 'Hello world' }],
      stop: 'end_turn',
      requestId: 'req_1',
      usage: {
        inputTokens: 10,
        outputTokens: 7,
        cacheReadTokens: 3,
        cacheWriteTokens: 2,
        requests: 1,
        costUsd: (10 * 10 + 7 * 20 + 3 * 1 + 2 * 12.5) / 1e6,
      },
    });
  });

  test('costs null while no price is configured', async () => {
    const reply = await sendTo((response) => stream(response, WHOLE));
    expect(reply.usage.costUsd).toBeNull();
  });

  test.each([
    'end_turn',
    'tool_use',
    'max_tokens',
    'stop_sequence',
    'pause_turn',
    'refusal',
    'model_context_window_exceeded',
    'something_new',
  ])('passes the stop reason %s through', async (stop) => {
    const reply = await sendTo((response) => stream(response, [messageStart(), ...textBlock(0, 'x'), ...ending(stop)]));
    expect(reply.stop).toBe(stop);
  });

  test('without a stop reason says that it is missing', async () => {
    const reply = await sendTo((response) => stream(response, [messageStart(), ...textBlock(0, 'x'), ...ending(null)]));
    expect(reply.stop).toBe('missing');
  });

  test('keeps thinking, redacted and unknown blocks as they came', async () => {
    const thinking = block(0, { type: 'thinking', thinking: '', signature: '' }, [
      { type: 'thinking_delta', thinking: 'hm ' },
      { type: 'thinking_delta', thinking: 'yes' },
      { type: 'signature_delta', signature: 'sig' },
    ]);
    const redacted = block(1, { type: 'redacted_thinking', data: 'abc' }, []);
    const odd = block(2, { type: 'brand_new', x: [1] }, []);
    const events = [messageStart(), ...thinking, ...redacted, ...odd, ...textBlock(3, 'done'), ...ending('end_turn')];
    const reply = await sendTo((response) => stream(response, events));
    expect(reply.content).toEqual([
      { type: 'thinking', thinking: 'hm yes', signature: 'sig' },
      { type: 'redacted_thinking', data: 'abc' },
      { type: 'brand_new', x: [1] },
      { type: 'text', text: 'done' },
    ]);
  });

  test('reports progress, pings included', async () => {
    const server = await serve((response) => stream(response, WHOLE));
    const seen: ModelProgress[] = [];
    const onProgress = (progress: ModelProgress) => void seen.push(progress);
    await clientOf(server).send(REQUEST, { signal: new AbortController().signal, onProgress });
    expect(seen.map(({ event }) => event)).toContain('ping');
    expect(seen.at(-1)).toEqual({ outputChars: 11, lastText: 'Hello world', event: 'message_stop' });
  });

  test.each([
    ['half an object', ['{"path": "a', '.txt'], { __raw: '{"path": "a.txt' }],
    ['a string', ['"path"'], { __raw: '"path"' }],
    ['a list', ['[1]'], { __raw: '[1]' }],
    ['nothing', [''], {}],
    ['an object in parts', ['{"pa', 'th": 1}'], { path: 1 }],
    ['half a surrogate pair', ['{"path": "\\ud83d"}'], { path: '\uFFFD' }],
  ])('has %s as tool input in a form that can be sent back', async (_what, json, input) => {
    const events = [messageStart(), ...toolBlock(0, 'toolu_1', 'read', ...json), ...ending('tool_use')];
    const reply = await sendTo((response) => stream(response, events));
    expect(reply.content).toEqual([{ type: 'tool_use', id: 'toolu_1', name: 'read', input }]);
  });

  test('arrives when its events are torn into single bytes', async () => {
    const reply = await sendTo((response) => {
      openStream(response);
      const bytes = Buffer.from([messageStart(), ...textBlock(0, 'ä€😀'), ...ending('end_turn')].map(toText).join(''));
      for (const byte of bytes) response.write(Buffer.of(byte));
      response.end();
    });
    expect(reply.content).toEqual([{ type: 'text', text: 'ä€😀' }]);
  });

  test('is taken even when the server never closes the stream, and its connection is freed', async () => {
    const server = await serve((response) => {
      openStream(response);
      write(response, WHOLE);
    });
    const reply = await clientOf(server).send(REQUEST, { signal: new AbortController().signal });
    expect(reply.stop).toBe('end_turn');
    await vi.waitFor(() => expect(server.openRequests()).toBe(0), { timeout: 5000 });
  });
});

function toText(event: Event): string {
  return `event: ${event.type}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`;
}

describe('a cut answer', () => {
  const tool = toolBlock(1, 'toolu_1', 'read', '{"path":', ' "a"}');
  const events = [messageStart(), ...textBlock(0, 'Hello', ' world'), ...tool, ...ending('tool_use')];

  test.each(events.slice(0, -1).map((event, index): [number, string] => [index + 1, event.type]))(
    'after %i events (%s) is never a message',
    async (count) => {
      const error = await failureOf((response) => {
        openStream(response);
        write(response, events.slice(0, count));
        setImmediate(() => response.destroy());
      });
      expect(error).toMatchObject({ kind: 'cut', isRetryable: true, isSettled: false });
    },
  );

  test('that ends in good order but without its stop event is cut all the same', async () => {
    const error = await failureOf((response) => stream(response, events.slice(0, -1)));
    expect(error).toMatchObject({ kind: 'cut', requestId: 'req_1' });
    expect(error.seen).toEqual({ inputTokens: 10, cacheReadTokens: 3, cacheWriteTokens: 2, outputTokensMin: 7 });
  });

  test('before anything came has nothing seen', async () => {
    const error = await failureOf((response) => stream(response, []));
    expect(error).toMatchObject({ kind: 'cut', seen: { inputTokens: 0, outputTokensMin: 0 } });
  });

  test('before its headers is a connection failure that may have been served', async () => {
    const error = await failureOf((response) => response.destroy());
    expect(error).toMatchObject({ kind: 'connection', isRetryable: true, isSettled: false, wasSent: true });
  });

  test.each([
    ['a delta without its block', [messageStart(), { type: 'content_block_delta', index: 4, delta: {} }]],
    ['content before the message', textBlock(0, 'x')],
    ['a block left open', [messageStart(), ...textBlock(0, 'x').slice(0, 2), ...ending('end_turn')]],
    ['two messages', [messageStart(), messageStart()]],
  ])('that makes no sense (%s) can be asked again', async (_what, odd) => {
    const error = await failureOf((response) => stream(response, odd as Event[]));
    expect(error).toMatchObject({ kind: 'server', isRetryable: true });
  });
});

describe('a silent server', () => {
  test.each([
    ['before the headers', []],
    ['after message_start', [messageStart()]],
    ['in the middle of text', [messageStart(), ...textBlock(0, 'x').slice(0, 2)]],
  ])('%s is given up', async (_when, events) => {
    const error = await failureOf(
      (response) => {
        if (events.length === 0) return;
        openStream(response);
        write(response, events);
      },
      { idleTimeoutMs: 500 },
    );
    expect(error).toMatchObject({ kind: 'idle', isRetryable: true, isSettled: false });
    expect(error.seen.inputTokens).toBe(events.length === 0 ? 0 : 10);
  });

  test('that pings lives, but not for ever', async () => {
    const timers: NodeJS.Timeout[] = [];
    const started = performance.now();
    const error = await failureOf(
      (response) => {
        openStream(response);
        timers.push(setInterval(() => write(response, [PING]), 20));
      },
      { idleTimeoutMs: 500, pingsOnlyTimeoutMs: 1_500 },
    );
    timers.forEach(clearInterval);
    expect(error.kind).toBe('idle');
    expect(performance.now() - started).toBeGreaterThan(1_000);
  });

  test('that is slow but sends is waited for', async () => {
    const reply = await sendTo(
      (response) => {
        openStream(response);
        const events = [...WHOLE];
        const timer = setInterval(() => {
          const event = events.shift();
          if (event) return write(response, [event]);
          clearInterval(timer);
          response.end();
        }, 120);
      },
      { idleTimeoutMs: 700, pingsOnlyTimeoutMs: 800 },
    );
    expect(reply.stop).toBe('end_turn');
  });
});

describe('an abort', () => {
  test.each([
    ['before the headers', false],
    ['in the stream', true],
  ])('%s ends a request that would be waited for for minutes and frees the connection', async (_when, hasStarted) => {
    const server = await serve((response) => {
      if (!hasStarted) return;
      openStream(response);
      write(response, [messageStart()]);
    });
    const controller = new AbortController();
    const sent = clientOf(server).send(REQUEST, { signal: controller.signal, onProgress: () => undefined });
    const outcome = sent.catch((error: unknown) => error);
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), { interval: 5 });
    controller.abort();
    expect(await outcome).toMatchObject({ kind: 'aborted', isSettled: false });
    await vi.waitFor(() => expect(server.openRequests()).toBe(0), { timeout: 5000 });
  });

  test('before sending sends nothing', async () => {
    const server = await serve((response) => stream(response, WHOLE));
    const sent = clientOf(server).send(REQUEST, { signal: AbortSignal.abort() });
    await expect(sent).rejects.toMatchObject({ kind: 'aborted', isSettled: true, wasSent: false });
    expect(server.requests).toHaveLength(0);
  });
});

describe('an error answer', () => {
  test.each([
    [400, 'invalid_request_error', 'invalid', false],
    [401, 'authentication_error', 'auth', false],
    [402, 'billing_error', 'billing', false],
    [403, 'permission_error', 'permission', false],
    [404, 'not_found_error', 'not_found', false],
    [408, 'timeout_error', 'timeout', true],
    [409, 'conflict_error', 'conflict', true],
    [413, 'request_too_large', 'too_large', false],
    [422, 'invalid_request_error', 'invalid', false],
    [429, 'rate_limit_error', 'rate_limited', true],
    [500, 'api_error', 'server', true],
    [503, 'api_error', 'server', true],
    [529, 'overloaded_error', 'overloaded', true],
    [400, 'overloaded_error', 'overloaded', true],
    [400, 'api_error', 'invalid', false],
    [500, 'invalid_request_error', 'server', true],
  ])('%i %s is %s', async (status, type, kind, isRetryable) => {
    const error = await failureOf((response) => apiError(response, status, type));
    expect(error).toMatchObject({ kind, isRetryable, status, requestId: 'req_err' });
  });

  test.each([
    ['prompt is too long: 210000 tokens > 200000 maximum', 'context_exceeded'],
    ['messages.1.content.0: Invalid `signature` in `thinking` block', 'invalid_thinking'],
    ['messages.1: text content blocks must be non-empty', 'invalid'],
  ])('400 with "%s" is %s', async (message, kind) => {
    const error = await failureOf((response) => apiError(response, 400, 'invalid_request_error', message));
    expect(error).toMatchObject({ kind, isRetryable: false });
  });

  test('is sent once: nothing here tries again', async () => {
    const server = await serve((response) => apiError(response, 529, 'overloaded_error'));
    const sent = clientOf(server).send(REQUEST, { signal: new AbortController().signal });
    await expect(sent).rejects.toMatchObject({ kind: 'overloaded' });
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    ['seconds', { 'retry-after': '30' }, 30_000],
    ['milliseconds', { 'retry-after-ms': '1500', 'retry-after': '30' }, 1500],
    ['nonsense', { 'retry-after': 'soon' }, undefined],
    ['zero', { 'retry-after': '0' }, undefined],
    ['a week', { 'retry-after': '604800' }, 3_600_000],
  ])('names when to ask again in %s', async (_unit, headers, retryAfterMs) => {
    const error = await failureOf((response) => apiError(response, 429, 'rate_limit_error', 'slow', headers as never));
    expect(error.retryAfterMs).toBe(retryAfterMs);
  });

  test('names when to ask again as a date', async () => {
    const date = new Date(Date.now() + 20_000).toUTCString();
    const error = await failureOf((response) =>
      apiError(response, 429, 'rate_limit_error', 'slow', { 'retry-after': date }),
    );
    expect(error.retryAfterMs).toBeGreaterThan(17_000);
    expect(error.retryAfterMs).toBeLessThanOrEqual(20_000);
  });

  test.each([
    ['overloaded_error', 'overloaded', true],
    ['rate_limit_error', 'rate_limited', true],
    ['api_error', 'server', true],
    ['invalid_request_error', 'invalid', false],
  ])('inside a stream (%s) is %s', async (type, kind, isRetryable) => {
    const error = await failureOf((response) =>
      stream(response, [messageStart(), { type: 'error', error: { type, message: 'Overloaded' } }]),
    );
    expect(error).toMatchObject({ kind, isRetryable, isSettled: false, seen: { inputTokens: 10 } });
  });

  test('in HTML comes from a proxy and may pass', async () => {
    const error = await failureOf((response) => {
      response.writeHead(502, { 'content-type': 'text/html' });
      response.end('<html>Bad gateway</html>');
    });
    expect(error).toMatchObject({ kind: 'server', status: 502, isSettled: false });
  });

  test.each([
    ['application/json', 'invalid'],
    ['text/html', 'server'],
  ])('with status 200 and %s is no stream', async (type, kind) => {
    const error = await failureOf((response) => {
      response.writeHead(200, { 'content-type': type });
      response.end('{}');
    });
    expect(error.kind).toBe(kind);
    expect(error.message).toContain(type);
  });

  test('of nobody listening names the address and the reason', async () => {
    const server = await startStreamServer(() => undefined);
    await server.close();
    const outcome = await clientOf(server)
      .send(REQUEST, { signal: new AbortController().signal })
      .catch((e: unknown) => e);
    expect(outcome).toMatchObject({ kind: 'connection', isSettled: true, wasSent: false });
    expect((outcome as ModelError).message).toBe(`cannot reach the model server at ${server.url}: ECONNREFUSED`);
  });
});

describe('secrets', () => {
  test('are in no error text, whatever the server sends back', async () => {
    const answers: Answer[] = [
      (response, { headers }) => apiError(response, 401, 'authentication_error', `bad key ${headers.authorization}`),
      (response) => stream(response, [{ type: 'error', error: { type: 'api_error', message: `key ${KEY} is old` } }]),
      (response) => {
        response.writeHead(500, { 'content-type': 'text/plain' });
        response.end(`Bearer ${KEY}`);
      },
    ];
    for (const answer of answers) {
      const error = await failureOf(answer);
      expect(`${error.message}\n${error.stack}\n${JSON.stringify(error)}`).not.toContain(KEY);
      expect(error.cause).toBeUndefined();
      expect(error.message).toContain('***');
    }
  });

  test('that no header can carry are refused without being named', () => {
    expect(() => createModelClient({ apiKey: `${KEY}\nx` })).toThrow(/API key has characters/);
    expect(() => createModelClient({ apiKey: `${KEY}ü` })).not.toThrow(KEY);
    expect(() => createModelClient({ baseUrl: `http://me:${KEY}@localhost` })).toThrow(/without user and password/);
    expect(() => createModelClient({ baseUrl: 'nowhere' })).toThrow(/http/);
  });
});

describe('the environment', () => {
  test('changes nothing: only what is passed is sent', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'env-key');
    vi.stubEnv('ANTHROPIC_AUTH_TOKEN', 'env-token');
    vi.stubEnv('ANTHROPIC_BASE_URL', 'http://127.0.0.1:9');
    vi.stubEnv('ANTHROPIC_CUSTOM_HEADERS', 'x-leak: 1');
    const server = await serve((response) => stream(response, WHOLE));
    const signal = new AbortController().signal;
    await clientOf(server).send(REQUEST, { signal });
    await clientOf(server, { apiKey: undefined, authToken: 'token-1' }).send(REQUEST, { signal });
    await clientOf(server, { apiKey: undefined }).send(REQUEST, { signal });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${KEY}`,
      'Bearer token-1',
      undefined,
    ]);
    expect(server.requests.some(({ headers }) => 'x-leak' in headers || 'x-api-key' in headers)).toBe(false);
    expect(process.env['ANTHROPIC_API_KEY']).toBe('env-key');
  });
});

describe('models', () => {
  const info = { id: 'm-1', type: 'model', max_input_tokens: 50_000, max_tokens: 64_000 };
  const asJson =
    (value: unknown): Answer =>
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };

  test('have the limits the server names, asked once', async () => {
    const server = await serve(asJson(info));
    const client = clientOf(server);
    expect(await Promise.all([client.window('m-1'), client.window('m-1'), client.maxOutput('m-1')])).toEqual([
      50_000, 50_000, 32_000,
    ]);
    expect(server.requests.map(({ path }) => path)).toEqual(['/v1/models/m-1']);
  });

  test('have the limits that are configured, without asking', async () => {
    const server = await serve(asJson(info));
    const client = clientOf(server, { models: { 'm-1': { window: 1000, maxOutputTokens: 50 } } });
    expect([await client.window('m-1'), await client.maxOutput('m-1')]).toEqual([1000, 50]);
    expect(server.requests).toHaveLength(0);
  });

  test.each([
    ['knows no such address', (response) => apiError(response, 404, 'not_found_error'), 1],
    ['names no limits', asJson({ id: 'm-1', object: 'model' }), 1],
    ['has trouble, and is asked again', (response) => apiError(response, 500, 'api_error'), 2],
  ] as [string, Answer, number][])('have defaults when the server %s', async (_what, answer, requests) => {
    const server = await serve(answer);
    const client = clientOf(server);
    expect([await client.window('m-1'), await client.maxOutput('m-1')]).toEqual([200_000, 8192]);
    expect(server.requests).toHaveLength(requests);
  });

  test('are listed by name', async () => {
    const server = await serve(asJson({ data: [info, { ...info, id: 'm-2' }], has_more: false }));
    expect(await clientOf(server).listModels()).toEqual(['m-1', 'm-2']);
  });

  test('cannot be listed without a valid key', async () => {
    const server = await serve((response) => apiError(response, 401, 'authentication_error'));
    await expect(clientOf(server).listModels()).rejects.toMatchObject({ kind: 'auth' });
  });
});

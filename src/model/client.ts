import { StreamProblem, createAccumulator } from './accumulator.ts';
import type { Accumulator, StreamEvent } from './accumulator.ts';
import { createCatalog } from './catalog.ts';
import type { ModelSettings } from './catalog.ts';
import { readEvents, responseProblem } from './events.ts';
import { toModelError, toStreamError } from './failure.ts';
import type { RequestFacts } from './failure.ts';
import { ModelError, NOTHING_SEEN } from './model.ts';
import type { ModelClient, ModelErrorKind, ModelRequest, SendOptions } from './model.ts';
import { toReply } from './reply.ts';
import { toParams } from './request.ts';
import { createSdk } from './sdk.ts';
import type { Sdk, SdkOptions } from './sdk.ts';
import { watchRequest } from './watch.ts';
import type { Watch } from './watch.ts';

export type { ModelSettings } from './catalog.ts';

export interface ModelClientOptions extends SdkOptions {
  /** By model name. */
  readonly models?: Readonly<Record<string, ModelSettings>>;
  /** Longest time without a byte from the server, from sending on. Default 120,000. */
  readonly idleTimeoutMs?: number;
  /** Longest time in which only pings come. Default 600,000. */
  readonly pingsOnlyTimeoutMs?: number;
}

/** The only way to the model server. Reads no environment variable. Throws for a key or address that cannot be used. */
export function createModelClient(options: ModelClientOptions): ModelClient {
  const sdk = createSdk(options);
  const { idleTimeoutMs = 120_000, pingsOnlyTimeoutMs = 600_000 } = options;
  const catalog = createCatalog(sdk.anthropic, options.models ?? {});
  return {
    ...catalog,
    listModels: () => listModels(sdk),
    async send(request, { signal, onProgress }) {
      const watch = watchRequest({ signal, idleTimeoutMs, pingsOnlyTimeoutMs });
      const attempt: Attempt = { sdk, request, watch, received: createAccumulator(), idleTimeoutMs };
      try {
        const response = await post(attempt);
        attempt.requestId = response.headers.get('request-id') ?? undefined;
        const message = await receive(attempt, response, onProgress);
        return toReply(message, catalog.price(request.model, message.usage), attempt.requestId);
      } finally {
        watch.end();
      }
    },
  };
}

/** One request under way. */
interface Attempt {
  readonly sdk: Sdk;
  readonly request: ModelRequest;
  readonly watch: Watch;
  readonly received: Accumulator;
  readonly idleTimeoutMs: number;
  /** Known once the headers are there. */
  requestId?: string | undefined;
}

async function post(attempt: Attempt): Promise<Response> {
  const { sdk, request, watch } = attempt;
  if (watch.stoppedBy()) throw stopped(attempt, true);
  try {
    // The SDK's own limit, which ends with the headers, must not come before the watch, which covers the whole stream.
    const timeout = Math.max(attempt.idleTimeoutMs * 2, 60_000);
    const response = await sdk.anthropic.messages
      .create(toParams(request), { signal: watch.signal, timeout })
      .asResponse();
    watch.noteBytes();
    return response;
  } catch (error) {
    if (watch.stoppedBy()) throw stopped(attempt, false);
    throw toModelError(error, facts(attempt));
  }
}

/** Without `message_stop` there is no message, however whole it looks. */
async function receive(
  attempt: Attempt,
  response: Response,
  onProgress: SendOptions['onProgress'],
): Promise<ReturnType<Accumulator['finish']>> {
  const { received } = attempt;
  const problem = responseProblem(response);
  if (problem !== undefined) throw notAStream(attempt, response, problem);
  for await (const event of readOrFail(attempt, response)) {
    if (event.type === 'error') throw toStreamError(errorIn(event), facts(attempt));
    const message = inProtocol(attempt, () => {
      received.add(event);
      return event.type === 'message_stop' ? received.finish() : undefined;
    });
    onProgress?.({ outputChars: received.outputChars(), lastText: received.lastText(), event: event.type });
    if (message) return message;
  }
  if (attempt.watch.stoppedBy()) throw stopped(attempt, false);
  throw failed(attempt, 'cut', 'the answer ended before its stop event');
}

/** Whatever goes wrong while a body is read is the connection's doing. */
async function* readOrFail(attempt: Attempt, response: Response): AsyncGenerator<StreamEvent, void> {
  try {
    yield* readEvents(response, attempt.watch);
  } catch (error) {
    if (attempt.watch.stoppedBy()) throw stopped(attempt, false);
    if (error instanceof StreamProblem) throw failed(attempt, 'server', `the answer makes no sense: ${error.message}`);
    throw failed(attempt, 'cut', 'the connection to the model server broke off in the middle of its answer');
  }
}

function inProtocol<T>(attempt: Attempt, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof StreamProblem)) throw error;
    throw failed(attempt, 'server', `the answer makes no sense: ${error.message}`);
  }
}

/** A page in its place may come from a proxy and pass; JSON comes from a server that does not stream. */
function notAStream(attempt: Attempt, response: Response, problem: string): ModelError {
  // Only frees the connection; one that is broken already is free.
  response.body?.cancel().catch(() => undefined);
  const kind = response.headers.get('content-type')?.includes('json') ? 'invalid' : 'server';
  return failed(attempt, kind, `the model server at ${attempt.sdk.server} answered ${problem}`);
}

function stopped(attempt: Attempt, isUnsent: boolean): ModelError {
  if (attempt.watch.stoppedBy() === 'caller') {
    return new ModelError({
      kind: 'aborted',
      message: 'the request was stopped',
      ...facts(attempt),
      isSettled: isUnsent,
      wasSent: !isUnsent,
    });
  }
  const message = `nothing came from the model server for too long (more than ${attempt.idleTimeoutMs} ms, or only pings)`;
  return failed(attempt, 'idle', message);
}

function failed(attempt: Attempt, kind: ModelErrorKind, message: string): ModelError {
  return new ModelError({ kind, message, ...facts(attempt) });
}

function facts({ sdk: { server, secrets }, received, requestId }: Attempt): RequestFacts {
  return { server, secrets, seen: received.seen(), requestId };
}

function errorIn({ error }: StreamEvent): { type?: string; message?: string } {
  const { type, message } = (error ?? {}) as { type?: unknown; message?: unknown };
  return {
    ...(typeof type === 'string' && { type }),
    ...(typeof message === 'string' && { message }),
  };
}

async function listModels({ anthropic, server, secrets }: Sdk): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const { id } of anthropic.models.list({}, { timeout: 10_000 })) names.push(id);
  } catch (error) {
    throw toModelError(error, { server, secrets, seen: NOTHING_SEEN });
  }
  return names;
}

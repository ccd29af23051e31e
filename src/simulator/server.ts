import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerMessages } from './answer-messages.ts';
import type { Desk } from './answer-messages.ts';
import { createFaultCounter, toErrorBody } from './faults.ts';
import { omit } from './json.ts';
import { createLedger } from './ledger.ts';
import type { LedgerEntry } from './ledger.ts';
import { loadScenarios } from './load-scenarios.ts';
import type { ExtraScenarios } from './load-scenarios.ts';
import { DEFAULT_MODELS, toModelInfo, toModelPage } from './models.ts';
import type { Models } from './models.ts';
import { sendJson } from './play.ts';
import { createPromptCache } from './prompt-cache.ts';
import { estimatePromptTokens } from './prompt-elements.ts';
import { readBody } from './read-body.ts';
import { headersProblem, validate } from './validate.ts';
import { invalid } from './wire.ts';
import type { Problem, RequestBody } from './wire.ts';

export interface SimulatorOptions {
  /** Default 0: a free one. Always on 127.0.0.1. */
  readonly port?: number;
  /** Scenarios besides the built-in ones: functions by name, or a folder of JSON files. */
  readonly scenarios?: ExtraScenarios;
  /** Played when no user message has a marker. Default `echo`. */
  readonly scenario?: string;
  /** Each request is appended here as it arrives and as it ends; an existing file is gone on with. */
  readonly ledgerFile?: string;
  /** The only key let in. Default: any key that is not empty. */
  readonly apiKey?: string;
  /** Models besides `sim-1` and `sim-small`. */
  readonly models?: Models;
  /** Keep each request's messages in the ledger, in memory. Default true. */
  readonly keepMessages?: boolean;
}

export interface Simulator {
  /** For ANTHROPIC_BASE_URL. */
  readonly url: string;
  readonly port: number;
  /** One entry a request, in order of arrival. */
  ledger(): LedgerEntry[];
  /** Cuts what is under way and stops listening. */
  close(): Promise<void>;
}

/** Starts a model that speaks the Messages API on loopback and plays scenarios. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const desk = openDesk(options);
  const server = createServer((request, response) => {
    handle(desk, request, response).catch((error: unknown) => {
      fail(response, error);
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const port = await listen(server, options.port ?? 0);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    ledger: () => desk.ledger.entries(),
    close: () => close(server, desk),
  };
}

/** Longer than a client keeps an idle connection, so that none is closed just as it is used again. */
const KEEP_ALIVE_MS = 120_000;

function openDesk(options: SimulatorOptions): Desk {
  const scenarios = loadScenarios(options.scenarios);
  const fallback = options.scenario ?? 'echo';
  if (!scenarios.has(fallback)) {
    throw new Error(`There is no scenario "${fallback}". Choose one of: ${[...scenarios.keys()].join(', ')}.`);
  }
  return {
    scenarios,
    fallback,
    models: { ...DEFAULT_MODELS, ...options.models },
    apiKey: options.apiKey,
    keepMessages: options.keepMessages ?? true,
    ledger: createLedger(options.ledgerFile),
    cache: createPromptCache(),
    faults: createFaultCounter(),
    underWay: new Set(),
  };
}

async function handle(desk: Desk, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
  const raw = await readBody(request);
  response.setHeader('request-id', nextRequestId());
  const route = `${request.method ?? ''} ${pathname}`;
  if (route === 'GET /health') return sendJson(response, 200, { status: 'ok', scenarios: desk.scenarios.size });
  if (route === 'GET /ledger') return sendLedger(desk, response, searchParams.get('messages') === '1');
  if (route === 'POST /v1/messages') return answerMessages(desk, { request, response, raw });
  const problem = headersProblem({ headers: request.headers, bodyBytes: raw.bytes, apiKey: desk.apiKey });
  if (problem) return sendProblem(response, problem);
  if (route === 'POST /v1/messages/count_tokens') return countTokens(desk, request, response, raw.json);
  if (route === 'GET /v1/models') return sendJson(response, 200, toModelPage(desk.models));
  if (route.startsWith(MODEL_ROUTE))
    return sendModel(desk, response, decodeURIComponent(route.slice(MODEL_ROUTE.length)));
  return sendProblem(response, { status: 404, type: 'not_found_error', message: `Not found: ${route}` });
}

const MODEL_ROUTE = 'GET /v1/models/';

function sendLedger(desk: Desk, response: ServerResponse, withMessages: boolean): void {
  const entries = desk.ledger.entries();
  sendJson(response, 200, withMessages ? entries : entries.map((entry) => omit(entry, 'messages')));
}

function countTokens(desk: Desk, request: IncomingMessage, response: ServerResponse, body: unknown): void {
  const { models, apiKey } = desk;
  const problem = validate({ headers: request.headers, body, models, apiKey, isCount: true });
  if (problem) return sendProblem(response, problem);
  sendJson(response, 200, { input_tokens: estimatePromptTokens(body as RequestBody) });
}

function sendModel(desk: Desk, response: ServerResponse, id: string): void {
  const model = Object.hasOwn(desk.models, id) ? desk.models[id] : undefined;
  if (!model) return sendProblem(response, { status: 404, type: 'not_found_error', message: `model: ${id}` });
  sendJson(response, 200, toModelInfo(id, model));
}

function sendProblem(response: ServerResponse, { status, type, message }: Problem): void {
  sendJson(response, status, toErrorBody(type, message, String(response.getHeader('request-id'))));
}

/** A bug in the simulator is shown, as an error that no client retries. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent) response.destroy();
  else
    sendProblem(
      response,
      invalid(`The simulator failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}`),
    );
}

let requests = 0;

function nextRequestId(): string {
  requests++;
  return `req_sim_${requests}`;
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new Error(`The simulator cannot listen on 127.0.0.1:${port}: ${error.message}. Choose another port.`, {
          cause: error,
        }),
      );
    });
    server.listen(port, '127.0.0.1', () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** When this resolves, every request has its ending in the ledger. */
async function close(server: Server, desk: Desk): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  server.closeAllConnections();
  await closed;
  await Promise.allSettled(desk.underWay);
}

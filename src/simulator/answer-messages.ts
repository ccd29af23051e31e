import type { IncomingMessage, ServerResponse } from 'node:http';
import { isSummaryRequest, readConversation, toSummary, withoutForbiddenCalls } from './conversation.ts';
import type { Conversation } from './conversation.ts';
import { toErrorBody } from './faults.ts';
import type { FaultCounter } from './faults.ts';
import { canonicalJson, isObject, sha256 } from './json.ts';
import type { Arrival, Ending, Ledger } from './ledger.ts';
import type { Models } from './models.ts';
import { play, sendJson } from './play.ts';
import type { PromptCache } from './prompt-cache.ts';
import type { RawBody } from './read-body.ts';
import { toReply } from './reply.ts';
import type { Scenario, Step, View } from './scenario.ts';
import { validate } from './validate.ts';
import { invalid } from './wire.ts';
import type { Problem, RequestBody } from './wire.ts';

/** All that answering needs: what is offered, and the little that is remembered. */
export interface Desk {
  readonly scenarios: ReadonlyMap<string, Scenario>;
  readonly fallback: string;
  readonly models: Models;
  readonly apiKey: string | undefined;
  readonly keepMessages: boolean;
  readonly ledger: Ledger;
  readonly cache: PromptCache;
  readonly faults: FaultCounter;
  readonly underWay: Set<Promise<unknown>>;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly raw: RawBody;
}

/** POST /v1/messages: validate, ask the scenario, play its step, and keep the books. */
export async function answerMessages(desk: Desk, exchange: Exchange): Promise<void> {
  const conversation = tryReadConversation(desk, exchange.raw.json);
  const end = desk.ledger.open(toArrival(desk, exchange.raw.json, conversation));
  const answering = answer(desk, exchange, conversation);
  desk.underWay.add(answering);
  try {
    end(await answering);
  } catch (error) {
    end({ outcome: 'error', status: 0, problem: String(error) });
    throw error;
  } finally {
    desk.underWay.delete(answering);
  }
}

async function answer(desk: Desk, exchange: Exchange, conversation: Conversation | undefined): Promise<Ending> {
  const { request, response, raw } = exchange;
  const { models, apiKey } = desk;
  const problem =
    validate({ headers: request.headers, body: raw.json ?? {}, bodyBytes: raw.bytes, models, apiKey }) ?? undefined;
  const refusal = raw.problem !== undefined && problem?.status === 400 ? invalid(raw.problem) : problem;
  if (refusal) return refuse(response, refusal);
  if (!conversation) return refuse(response, invalid('messages: the conversation cannot be read'));
  const step = nextStep(desk, conversation.view);
  if (isProblem(step)) return refuse(response, step);
  return playStep(desk, exchange, conversation.view, step);
}

function playStep(desk: Desk, { response, raw }: Exchange, view: View, step: Step): Promise<Ending> {
  const body = raw.json as RequestBody;
  const fault = desk.faults.next(step, view);
  const input = desk.cache.account(body);
  const reply = toReply({ step, view, input, malformedInput: fault.malformedInput ?? false });
  return play({
    response,
    reply,
    fault,
    isStream: body.stream === true,
    requestId: String(response.getHeader('request-id')),
    onBegin: () => {
      desk.cache.remember(body);
    },
  });
}

/** The scenario's step, or why there is none: a scenario that is not content refuses the request, loudly. */
function nextStep({ scenarios }: Desk, view: View): Step | Problem {
  const scenario = scenarios.get(view.scenario);
  if (!scenario) {
    return invalid(`There is no scenario "${view.scenario}". Choose one of: ${[...scenarios.keys()].join(', ')}.`);
  }
  if (isSummaryRequest(view)) return toSummary(view);
  try {
    return withoutForbiddenCalls(scenario.play(view), view);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return invalid(`Scenario ${view.scenario}, turn ${view.turn}: ${reason}`);
  }
}

function isProblem(step: Step | Problem): step is Problem {
  return 'status' in step;
}

function refuse(response: ServerResponse, { status, type, message }: Problem): Ending {
  sendJson(response, status, toErrorBody(type, message, String(response.getHeader('request-id'))));
  return { outcome: 'refused', status, errorType: type, problem: message };
}

/** Also for a request that will be refused, as far as it can be read. */
function tryReadConversation(desk: Desk, body: unknown): Conversation | undefined {
  try {
    return readConversation(body as RequestBody, desk.fallback);
  } catch {
    return undefined;
  }
}

function toArrival(desk: Desk, body: unknown, conversation: Conversation | undefined): Arrival {
  const { messages, system, tools, model } = isObject(body) ? (body as unknown as Partial<RequestBody>) : {};
  return {
    scenario: conversation?.view.scenario ?? '',
    agentMarker: (conversation?.marker?.source ?? '').slice(0, 200),
    turn: conversation?.view.turn ?? 0,
    model: String(model ?? ''),
    requestSha256: sha256(canonicalJson({ messages, system, tools })),
    ...(desk.keepMessages && messages ? { messages } : {}),
  };
}

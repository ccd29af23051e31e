import Anthropic from '@anthropic-ai/sdk';
import type { ApplicationFailure } from '@temporalio/common';
import { FAILURES, modelFailure } from '../failures.ts';
import { headOf } from '../store/text.ts';
import { ModelError } from './model.ts';
import type { ModelErrorFacts, ModelErrorKind, SeenTokens } from './model.ts';
import { toNotice, withoutSecrets } from './redact.ts';
import { retryAfterOf, retryDelay } from './retry-after.ts';

/** What is known of a request beside the error it ended with. */
export interface RequestFacts {
  /** Address of the server, for people. */
  readonly server: string;
  readonly secrets: readonly string[];
  readonly seen: SeenTokens;
  readonly requestId?: string | undefined;
}

/** An `error.type` that says more than the status it came with. */
const KIND_OF_TYPE: Readonly<Record<string, ModelErrorKind>> = {
  rate_limit_error: 'rate_limited',
  overloaded_error: 'overloaded',
  timeout_error: 'timeout',
  conflict_error: 'conflict',
  authentication_error: 'auth',
  billing_error: 'billing',
  permission_error: 'permission',
  not_found_error: 'not_found',
  request_too_large: 'too_large',
};

const KIND_OF_STATUS: Readonly<Record<number, ModelErrorKind>> = {
  401: 'auth',
  402: 'billing',
  403: 'permission',
  404: 'not_found',
  408: 'timeout',
  409: 'conflict',
  413: 'too_large',
  429: 'rate_limited',
  529: 'overloaded',
};

/** Answers of something between us and the model, which may have served the request all the same. */
const GATEWAY_STATUSES = [408, 502, 504, 520, 522, 524];

/** Failures to connect: the request was never sent. */
const UNSENT_CODES =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|(ERR_TLS|CERT|DEPTH|SELF_SIGNED|UNABLE).*)$/;

/** The one mapping from what the SDK throws. Anything that is not the server's or the network's doing is thrown on. */
export function toModelError(error: unknown, request: RequestFacts): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof Anthropic.APIConnectionTimeoutError) {
    const message = `the model server at ${request.server} did not answer in time`;
    return new ModelError({ kind: 'idle', message, seen: request.seen });
  }
  if (error instanceof Anthropic.APIConnectionError) return toConnectionError(error, request);
  if (error instanceof Anthropic.APIError && typeof error.status === 'number') return toStatusError(error, request);
  throw error;
}

/** An `error` event inside a stream that began well. */
export function toStreamError(body: { type?: string; message?: string }, request: RequestFacts): ModelError {
  const kind = kindOf(undefined, body.type, body.message ?? '');
  const said = toNotice(`${body.type ?? 'error'}: ${body.message ?? ''}`);
  const message = `the model server broke off its answer: ${said}`;
  const isSettled = request.seen.inputTokens + request.seen.cacheReadTokens + request.seen.cacheWriteTokens === 0;
  return new ModelError({ ...request, kind, message: withoutSecrets(message, request.secrets), isSettled });
}

/** How Temporal is told: a stable type, whether and when to try again, nothing of the conversation. */
export function toActivityFailure(error: ModelError, attempt: number, random = Math.random): ApplicationFailure {
  const { kind, status, requestId } = error;
  return modelFailure({
    type: FAILURE_TYPES[kind],
    message: headOf(error.message, 300),
    retryDelayMs: error.isRetryable ? retryDelay(attempt, error.retryAfterMs, random) : undefined,
    details: { kind, ...(status !== undefined && { status }), ...(requestId !== undefined && { requestId }) },
  });
}

const FAILURE_TYPES: Readonly<Record<ModelErrorKind, string>> = {
  rate_limited: FAILURES.modelRateLimited,
  overloaded: FAILURES.modelOverloaded,
  server: FAILURES.modelServer,
  timeout: FAILURES.modelServer,
  conflict: FAILURES.modelServer,
  connection: FAILURES.modelUnreachable,
  cut: FAILURES.modelCut,
  idle: FAILURES.modelIdle,
  aborted: FAILURES.modelAborted,
  invalid: FAILURES.modelInvalid,
  invalid_thinking: FAILURES.modelInvalid,
  context_exceeded: FAILURES.modelContextExceeded,
  auth: FAILURES.modelAuth,
  billing: FAILURES.modelBilling,
  permission: FAILURES.modelPermission,
  not_found: FAILURES.modelNotFound,
  too_large: FAILURES.modelTooLarge,
};

const NEXT_STEP: Partial<Record<ModelErrorKind, string>> = {
  auth: 'Check ANTHROPIC_API_KEY.',
  permission: 'Check what the key may use.',
  not_found: 'Check the model name and ANTHROPIC_BASE_URL.',
};

function toConnectionError(error: Error, { server, seen }: RequestFacts): ModelError {
  const code = codeOf(error);
  const message = `cannot reach the model server at ${server}: ${code ?? 'connection failed'}`;
  const isUnsent = code !== undefined && UNSENT_CODES.test(code);
  return new ModelError({ kind: 'connection', message, seen, isSettled: isUnsent, wasSent: !isUnsent });
}

type StatusError = InstanceType<typeof Anthropic.APIError> & { readonly status: number };

function isStatusError(error: InstanceType<typeof Anthropic.APIError>): error is StatusError {
  return typeof error.status === 'number';
}

function toStatusError(error: InstanceType<typeof Anthropic.APIError>, request: RequestFacts): ModelError {
  if (!isStatusError(error)) throw error;
  const { status, type } = error;
  const kind = kindOf(status, type ?? undefined, error.message);
  const said = headOf(toNotice(error.apiMessage ?? error.message), 180);
  const next = NEXT_STEP[kind];
  const message = `the model server answered ${status}${type ? ` ${type}` : ''}: ${said}${next ? ` ${next}` : ''}`;
  const facts: ModelErrorFacts = {
    kind,
    message: withoutSecrets(message, request.secrets),
    status,
    requestId: error.requestID ?? undefined,
    retryAfterMs: error.headers ? retryAfterOf(error.headers) : undefined,
    seen: request.seen,
    isSettled: !GATEWAY_STATUSES.includes(status),
  };
  return new ModelError(facts);
}

/** A specific type outranks the status; `api_error` and `invalid_request_error` are too general to. */
function kindOf(status: number | undefined, type: string | undefined, message: string): ModelErrorKind {
  const specific = type === undefined ? undefined : KIND_OF_TYPE[type];
  if (specific) return specific;
  if (status !== undefined && KIND_OF_STATUS[status]) return KIND_OF_STATUS[status];
  if (status === undefined ? type !== 'invalid_request_error' : status >= 500) return 'server';
  if (isContextProblem(message)) return 'context_exceeded';
  return isThinkingProblem(message) ? 'invalid_thinking' : 'invalid';
}

/** The API has no type of its own for these two; both can be cured by sending less. */
function isContextProblem(message: string): boolean {
  return /prompt is too long|context (window|length|limit)|maximum context|exceed_context_size/i.test(message);
}

function isThinkingProblem(message: string): boolean {
  return /thinking/i.test(message) && /signature|cannot be modified|unchanged|redacted|expected/i.test(message);
}

/** Code of the innermost cause that has one: `fetch failed` alone tells nobody anything. */
function codeOf(error: unknown): string | undefined {
  let code: string | undefined;
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < 6; depth++) {
    if ('code' in current && typeof current.code === 'string') code = current.code;
    current = current instanceof AggregateError ? current.errors[0] : current.cause;
  }
  return code;
}

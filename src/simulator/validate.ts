import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';
import { DEFAULT_MODELS } from './models.ts';
import type { Models } from './models.ts';
import { estimatePromptTokens } from './prompt-elements.ts';
import { cacheProblem } from './rules/cache.ts';
import { fieldsProblem } from './rules/fields.ts';
import { messagesProblem } from './rules/messages.ts';
import { pairingProblem } from './rules/pairing.ts';
import { thinkingProblem } from './rules/thinking.ts';
import { toolsProblem } from './rules/tools.ts';
import { unicodeProblem } from './rules/unicode.ts';
import { invalid } from './wire.ts';
import type { Problem, RequestBody } from './wire.ts';

export const MAX_BODY_BYTES = 32 * 1024 * 1024;

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface Request {
  readonly headers: Headers;
  /** The parsed body. */
  readonly body: unknown;
  /** Size as it came over the wire; default 0. */
  readonly bodyBytes?: number;
  /** Default: DEFAULT_MODELS. */
  readonly models?: Models;
  /** The only key that is let in; default: any. */
  readonly apiKey?: string;
  /** count_tokens needs no max_tokens and has no window. */
  readonly isCount?: boolean;
}

/** The error the real API would answer with, or undefined for a good request. Pure. */
export function validate(request: Request): Problem | undefined {
  return headersProblem(request) ?? bodyProblem(request);
}

/** Key, version and size: what is checked on every path. */
export function headersProblem({ headers, bodyBytes = 0, apiKey }: Omit<Request, 'body'>): Problem | undefined {
  if (bodyBytes > MAX_BODY_BYTES) {
    const message = `Request exceeds the maximum size: ${bodyBytes} bytes > ${MAX_BODY_BYTES} bytes`;
    return { status: 413, type: 'request_too_large', message };
  }
  const key = keyOf(headers);
  if (!key) return unauthorized('x-api-key header is required');
  if (apiKey !== undefined && key !== apiKey) return unauthorized('invalid x-api-key');
  if (!headers['anthropic-version']) return invalid('anthropic-version: header is required');
  return undefined;
}

function bodyProblem({ body, models = DEFAULT_MODELS, isCount = false }: Request): Problem | undefined {
  if (!isObject(body)) return invalid('The request body is not a JSON object');
  const shape = fieldsProblem(body, isCount) ?? messagesProblem(body.messages);
  if (shape !== undefined) return invalid(shape);
  return modelProblem(body, models) ?? contentProblem(toRequestBody(body), models, isCount);
}

/** Shape is checked by now, so the rules below may rely on it. */
function toRequestBody(body: JsonObject): RequestBody {
  return body as unknown as RequestBody;
}

function modelProblem(body: JsonObject, models: Models): Problem | undefined {
  const name = String(body.model);
  if (Object.hasOwn(models, name)) return undefined;
  const message = `model: ${name} (this simulator has ${Object.keys(models).join(', ')})`;
  return { status: 404, type: 'not_found_error', message };
}

function contentProblem(body: RequestBody, models: Models, isCount: boolean): Problem | undefined {
  const problem =
    toolsProblem(body) ??
    unicodeProblem(body) ??
    cacheProblem(body) ??
    pairingProblem(body.messages) ??
    thinkingProblem(body) ??
    (isCount ? undefined : windowProblem(body, models));
  return problem === undefined ? undefined : invalid(problem);
}

function windowProblem(body: RequestBody, models: Models): string | undefined {
  const model = models[body.model];
  if (!model) return undefined;
  if (body.max_tokens > model.maxTokens) {
    return `max_tokens: ${body.max_tokens} > ${model.maxTokens}, which is the maximum allowed number of output tokens for ${body.model}`;
  }
  const tokens = estimatePromptTokens(body);
  return tokens > model.maxInputTokens
    ? `prompt is too long: ${tokens} tokens > ${model.maxInputTokens} maximum`
    : undefined;
}

function unauthorized(message: string): Problem {
  return { status: 401, type: 'authentication_error', message };
}

function keyOf(headers: Headers): string {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key) return key;
  const bearer = headers.authorization;
  return typeof bearer === 'string' ? (/^Bearer\s+(.+)$/i.exec(bearer)?.[1] ?? '').trim() : '';
}

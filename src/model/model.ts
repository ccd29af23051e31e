import type { Usage } from '../protocol.ts';
import type { WireMessage } from '../store/messages.ts';
import type { ContentBlock } from '../store/records.ts';

/** A tool as the model sees it. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly input_schema: Readonly<Record<string, unknown>>;
}

export interface ModelRequest {
  readonly model: string;
  readonly system: string;
  readonly tools: readonly ToolSchema[];
  readonly messages: readonly WireMessage[];
  readonly maxTokens: number;
  /** `none`: text only, the tools stay in the prompt. Default `auto`. */
  readonly toolChoice?: 'auto' | 'none';
}

/** A whole answer: its stop event has come. */
export interface ModelReply {
  readonly messageId: string;
  /** As the server named it. */
  readonly model: string;
  readonly content: readonly ContentBlock[];
  /** Stop reason as the server sent it, known or not; `missing` when it sent none. */
  readonly stop: string;
  /** More about the stop, such as why a request was refused. */
  readonly stopDetails?: Readonly<Record<string, unknown>>;
  readonly usage: Usage;
  readonly requestId?: string;
}

/** News while an answer comes in. */
export interface ModelProgress {
  readonly outputChars: number;
  /** End of the text so far, at most 200 characters. */
  readonly lastText: string;
  /** Type of the latest stream event. */
  readonly event: string;
}

export interface SendOptions {
  readonly signal: AbortSignal;
  /** Called for every event; must be quick. */
  onProgress?(progress: ModelProgress): void;
}

/** The model server. One call is one request: nothing here is tried again. */
export interface ModelClient {
  /** Throws ModelError, and nothing else. */
  send(request: ModelRequest, options: SendOptions): Promise<ModelReply>;
  /** Tokens of input the model takes: as configured, as the server says, or 200,000. Never throws. */
  window(model: string): Promise<number>;
  /** Tokens to ask for at most: as configured, as the server says (at most 32,000), or 8,192. Never throws. */
  maxOutput(model: string): Promise<number>;
  /** Names the server offers. Throws ModelError. */
  listModels(): Promise<string[]>;
  /** Null while no price is configured for the model. */
  price(model: string, usage: TokenCounts): number | null;
}

export type TokenCounts = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cacheReadTokens' | 'cacheWriteTokens'>;

/** What the server had counted when a request broke off. */
export interface SeenTokens {
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** At least this much was put out. */
  readonly outputTokensMin: number;
}

export const NOTHING_SEEN: SeenTokens = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokensMin: 0 };

const RETRYABLE_KINDS = [
  'rate_limited',
  'overloaded',
  'server',
  'timeout',
  'conflict',
  'connection',
  'cut',
  'idle',
  'aborted',
] as const;

type FinalKind =
  'invalid' | 'invalid_thinking' | 'context_exceeded' | 'auth' | 'billing' | 'permission' | 'not_found' | 'too_large';

export type ModelErrorKind = (typeof RETRYABLE_KINDS)[number] | FinalKind;

export interface ModelErrorFacts {
  readonly kind: ModelErrorKind;
  /** Free of secrets. */
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly status?: number;
  readonly requestId?: string;
  readonly seen?: SeenTokens;
  /** Whether `seen` is all that can have been served; default false. */
  readonly isSettled?: boolean;
  /** Whether the request can have left this machine; default true. */
  readonly wasSent?: boolean;
}

/** Why there is no answer. Has no `cause`: the SDK's errors hold response bodies, which may quote the conversation. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: ModelErrorKind;
  readonly isRetryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly seen: SeenTokens;
  readonly isSettled: boolean;
  readonly wasSent: boolean;

  constructor(facts: ModelErrorFacts) {
    super(facts.message);
    this.kind = facts.kind;
    this.isRetryable = (RETRYABLE_KINDS as readonly string[]).includes(facts.kind);
    this.retryAfterMs = facts.retryAfterMs;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.seen = facts.seen ?? NOTHING_SEEN;
    this.isSettled = facts.isSettled ?? false;
    this.wasSent = facts.wasSent ?? true;
  }
}

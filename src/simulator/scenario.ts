import type { Block, Message } from './wire.ts';

/** What a call came back with, next to what was asked. */
export interface CallResult {
  readonly toolUseId: string;
  readonly name: string;
  readonly input: unknown;
  readonly text: string;
  readonly isError: boolean;
}

/** The conversation as a scenario sees it: a pure reading of one request. */
export interface View {
  readonly scenario: string;
  readonly args: Readonly<Record<string, string>>;
  /** Counts from 1: the replies already in the request, plus one. */
  readonly turn: number;
  /** Names this conversation in ids and fault counters. */
  readonly key: string;
  readonly model: string;
  readonly maxTokens: number;
  readonly messages: readonly Message[];
  /** Results in the last message, in the order they were given. */
  readonly lastResults: readonly CallResult[];
  /** All results of the conversation, in order. */
  readonly results: readonly CallResult[];
  readonly system: string;
  /** Names of the tools offered. */
  readonly tools: readonly string[];
  readonly toolChoice: string;
  readonly lastUserText: string;
}

export interface Call {
  readonly name: string;
  readonly input: unknown;
  /** Forces the tool_use id; by default it is derived from conversation, turn and index. */
  readonly id?: string;
  /** Sent instead of the input's JSON, as it is: for broken or cut-off input. */
  readonly rawInput?: string;
}

/** A place in a stream: right after the first event of that kind. `message_delta` is just before message_stop. */
export type Anchor = 'message_start' | 'thinking' | 'text' | 'input_json' | 'block_stop' | 'message_delta';

export interface Fault {
  /** Only the first n requests of this turn; default: every one. */
  readonly times?: number;
  /** Wait before the headers, in ms. */
  readonly delayMs?: number;
  /** Wait before each event, in ms. */
  readonly betweenMs?: number;
  /** Answer with this status instead of a reply. */
  readonly status?: number;
  /** Error type for `status`; by default the API's own for it. */
  readonly errorType?: string;
  readonly message?: string;
  /** Seconds; or a header value as it is; `date+5` is the HTTP date five seconds from now. */
  readonly retryAfter?: number | string;
  /** Cut the socket: after this many bytes of body (0: before the headers), or at an anchor. */
  readonly cut?: number | Anchor;
  /** Say nothing more after the anchor (and one ping), and keep the socket open. */
  readonly silence?: Anchor;
  /** An error event of this type inside the 200 stream, at `errorAt` (default `text`), then the end. */
  readonly errorEvent?: string;
  readonly errorAt?: Anchor;
  /** Send only the first half of each call's input JSON. */
  readonly malformedInput?: boolean;
}

/** One reply of the model, and what goes wrong with it. */
export interface Step {
  readonly thinking?: string;
  /** Thinking that is sent as an opaque redacted_thinking block. */
  readonly redacted?: string;
  /** '' sends an empty text block. */
  readonly text?: string;
  readonly calls?: readonly Call[];
  /** Content blocks sent as they are, after the above; tool_use without an id gets one. */
  readonly blocks?: readonly Block[];
  /** Default: tool_use with calls, else end_turn; max_tokens when the reply does not fit. */
  readonly stopReason?: string;
  readonly stopSequence?: string;
  /** Overrides what was computed. */
  readonly usage?: Readonly<Partial<Record<string, number>>>;
  /** Several: the second takes over when the first one's `times` are used up. */
  readonly fault?: Fault | readonly Fault[];
}

/** Pure: the same view gives the same step. Throws UnexpectedResult when the conversation is not what it should be. */
export type Play = (view: View) => Step;

export interface Scenario {
  readonly name: string;
  readonly description: string;
  /** Argument name → what it does and its default. */
  readonly args?: Readonly<Record<string, string>>;
  readonly play: Play;
}

/** The conversation took another course than the scenario expects; answered with a 400 that says so. */
export class UnexpectedResult extends Error {
  constructor(expected: string, came: string) {
    super(`expected ${expected}, but ${came}`);
    this.name = 'UnexpectedResult';
  }
}

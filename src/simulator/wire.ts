/** The part of the Messages API that the simulator speaks. Blocks stay open: what is not known here passes through. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface Message {
  readonly role: string;
  readonly content: string | readonly Block[];
}

export interface ToolDefinition {
  readonly name: string;
  readonly type?: string | null;
  readonly input_schema?: unknown;
  readonly [field: string]: unknown;
}

export interface RequestBody {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly Message[];
  readonly system?: string | readonly Block[];
  readonly tools?: readonly ToolDefinition[];
  readonly tool_choice?: { readonly type: string; readonly name?: string };
  readonly thinking?: { readonly type: string; readonly budget_tokens?: number };
  readonly cache_control?: unknown;
  readonly stream?: boolean;
}

export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
}

/** Why a request is answered with an error, in the API's own terms. */
export interface Problem {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export const NO_USAGE: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
};

export function invalid(message: string): Problem {
  return { status: 400, type: 'invalid_request_error', message };
}

/** A string is shorthand for one text block. */
export function blocksOf(content: Message['content'] | undefined): readonly Block[] {
  if (content === undefined) return [];
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

export function textOf(block: Block): string {
  return block.type === 'text' && typeof block.text === 'string' ? block.text : '';
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

export function errorTypeFor(status: number): string {
  return ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

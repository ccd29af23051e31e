import Anthropic from '@anthropic-ai/sdk';

const DEFAULT_BASE_URL = 'https://api.anthropic.com';

/** Only there for the SDK, which insists on a key; the header it would make is removed. */
const NO_KEY = 'none';

export interface SdkOptions {
  readonly apiKey?: string;
  readonly authToken?: string;
  readonly baseUrl?: string;
}

export interface Sdk {
  readonly anthropic: Anthropic;
  /** Origin of the server, for messages. */
  readonly server: string;
  readonly secrets: readonly string[];
}

/**
 * The SDK with everything said and nothing looked up: no retries (Temporal retries), no spans, no logs, no setting
 * from the environment or from a profile on disk. An API key wins over a token. Throws a plain Error for a key or
 * address that cannot be used.
 */
export function createSdk({ apiKey, authToken, baseUrl = DEFAULT_BASE_URL }: SdkOptions): Sdk {
  const url = parseUrl(baseUrl);
  const key = usable('API key', apiKey);
  const token = usable('auth token', authToken);
  const credential =
    key === undefined && token !== undefined
      ? { apiKey: null, authToken: token }
      : { apiKey: key ?? NO_KEY, authToken: null };
  const isOpen = key === undefined && token === undefined;
  const anthropic = withoutEnvironment(
    () =>
      new Anthropic({
        ...credential,
        baseURL: baseUrl,
        webhookKey: null,
        maxRetries: 0,
        openTelemetry: false,
        logLevel: 'off',
        ...(isOpen && { defaultHeaders: { Authorization: null } }),
      }),
  );
  return { anthropic, server: url.origin, secrets: [key, token].filter((secret) => secret !== undefined) };
}

function parseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  throw new Error(
    'The model base URL must be an http(s) address without user and password, such as https://host:port.',
  );
}

/** The key itself is in no message. */
function usable(what: string, secret: string | undefined): string | undefined {
  const trimmed = secret?.trim();
  if (!trimmed) return undefined;
  if (/^[\x21-\x7e]+$/.test(trimmed)) return trimmed;
  throw new Error(`The ${what} has characters that a header cannot carry; copy it again, in one line.`);
}

/** The SDK reads some variables whatever it is given (ANTHROPIC_CUSTOM_HEADERS); none of ours is to be by accident. */
function withoutEnvironment<T>(create: () => T): T {
  const hidden = Object.entries(process.env).filter(([name]) => name.startsWith('ANTHROPIC_'));
  for (const [name] of hidden) delete process.env[name];
  try {
    return create();
  } finally {
    for (const [name, value] of hidden) process.env[name] = value;
  }
}

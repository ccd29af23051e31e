import { DEMO_MODEL_SERVER, NO_MODEL_SERVER } from './protocol.ts';

/** The key of workers that ask the demo's own simulator: its address changes from start to start, this does not. */
export const DEMO_KEY = 'errand-demo';

const DEFAULT_BASE_URL = 'https://api.anthropic.com';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Which model server an environment means, in the one form in which runs and workers are compared: origin and path, or
 * one of two words. Never a key, a user, a password or a query.
 */
export function modelServerOf(env: Environment): string {
  const baseUrl = given(env, 'ANTHROPIC_BASE_URL');
  const key = given(env, 'ANTHROPIC_API_KEY');
  const hasAccess = [baseUrl, key, given(env, 'ANTHROPIC_AUTH_TOKEN')].some((value) => value !== undefined);
  if (!hasAccess) return NO_MODEL_SERVER;
  const { origin, hostname, pathname } = toUrl(baseUrl);
  if (key === DEMO_KEY && isLoopback(hostname)) return DEMO_MODEL_SERVER;
  return origin + pathname.replace(/\/+$/, '');
}

/** An address that is none is refused by whoever reads the settings; until then it is nobody's server. */
function toUrl(baseUrl = DEFAULT_BASE_URL): Pick<URL, 'origin' | 'hostname' | 'pathname'> {
  return URL.canParse(baseUrl) ? new URL(baseUrl) : { origin: 'invalid', hostname: '', pathname: '' };
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function given(env: Environment, name: string): string | undefined {
  return env[name]?.trim() || undefined;
}

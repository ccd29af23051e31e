import type { Config } from '../config.ts';
import { CliError } from './cli-error.ts';

const ASK_TIMEOUT_MS = 5000;
const DEFAULT_BASE_URL = 'https://api.anthropic.com';
const API_VERSION = '2023-06-01';
const SHOWN = 30;

/** The model a run will ask: named, or configured. A CliError lists what the server offers when there is none such. */
export async function resolveModel(config: Config, named: string | undefined): Promise<string> {
  const wanted = named ?? config.model.value;
  const listed = await listModels(config);
  if (wanted === undefined) {
    throw new CliError(
      `No model is chosen: set ERRAND_MODEL, "model" in ${config.configFile}, or --model. ${offer(listed)}`,
    );
  }
  // A server that lists nothing, or knows it by another of its names, shall decide when it is asked.
  const { models: offered } = listed;
  if (offered === undefined || offered.includes(wanted) || (await isKnown(config, wanted))) return wanted;
  throw new CliError(`The model server does not know the model "${wanted}". ${offer(listed)}`);
}

/** What the server said of its models; `unreachable`: the address at which nobody answered. */
interface Listed {
  readonly models?: readonly string[];
  readonly unreachable?: string;
}

function offer({ models, unreachable }: Listed): string {
  if (unreachable !== undefined) return `Which ones there are is not known: nobody answers at ${unreachable}.`;
  if (models === undefined || models.length === 0) return 'The model server does not say which models it has.';
  const more = models.length > SHOWN ? ` and ${models.length - SHOWN} more` : '';
  return `It offers: ${models.slice(0, SHOWN).join(', ')}${more}.`;
}

/** Ids of the server's models; without any when it answers in a way that is not understood. */
async function listModels(config: Config): Promise<Listed> {
  const response = await ask(config, '/v1/models?limit=1000');
  if (response === undefined) return { unreachable: shownAddress(addressOf(config)) };
  if (!response.ok) return {};
  const page = (await response.json().catch(() => undefined)) as { data?: unknown } | undefined;
  if (!Array.isArray(page?.data)) return {};
  const ids = page.data.flatMap((model: { id?: unknown } | null) => (typeof model?.id === 'string' ? [model.id] : []));
  return { models: ids };
}

function addressOf({ baseUrl }: Config): string {
  return (baseUrl.value ?? DEFAULT_BASE_URL).replace(/\/+$/, '');
}

/** Without user and password, should there be any. */
function shownAddress(address: string): string {
  return address.replace(/\/\/[^/]*@/, '//');
}

async function isKnown(config: Config, model: string): Promise<boolean> {
  const response = await ask(config, `/v1/models/${encodeURIComponent(model)}`);
  return response?.status !== 404;
}

// An outage here is no reason to refuse a run: it waits for the model by itself.
async function ask(config: Config, path: string): Promise<Response | undefined> {
  const { apiKey, authToken } = config;
  const headers = {
    'anthropic-version': API_VERSION,
    ...(apiKey.value && { 'x-api-key': apiKey.value.reveal() }),
    ...(authToken.value && { authorization: `Bearer ${authToken.value.reveal()}` }),
  };
  return fetch(`${addressOf(config)}${path}`, { headers, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) }).catch(
    () => undefined,
  );
}

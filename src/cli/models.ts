import type { Config } from '../config.ts';
import { CliError } from './cli-error.ts';

const ASK_TIMEOUT_MS = 5000;
const DEFAULT_BASE_URL = 'https://api.anthropic.com';
const API_VERSION = '2023-06-01';
const SHOWN = 30;

/** The model a run will ask: named, or configured. A CliError lists what the server offers when there is none such. */
export async function resolveModel(config: Config, named: string | undefined): Promise<string> {
  const wanted = named ?? config.model.value;
  const offered = await listModels(config);
  if (wanted === undefined) {
    throw new CliError(
      `No model is chosen: set ERRAND_MODEL, "model" in ${config.configFile}, or --model. ${offer(offered)}`,
    );
  }
  // A server that lists nothing, or knows it by another of its names, shall decide when it is asked.
  if (offered === undefined || offered.includes(wanted) || (await isKnown(config, wanted))) return wanted;
  throw new CliError(`The model server does not know the model "${wanted}". ${offer(offered)}`);
}

function offer(models: readonly string[] | undefined): string {
  if (models === undefined || models.length === 0) return 'The model server does not say which models it has.';
  const more = models.length > SHOWN ? ` and ${models.length - SHOWN} more` : '';
  return `It offers: ${models.slice(0, SHOWN).join(', ')}${more}.`;
}

/** Ids of the server's models; undefined when it does not answer, or not in a way that is understood. */
async function listModels(config: Config): Promise<readonly string[] | undefined> {
  const response = await ask(config, '/v1/models?limit=1000');
  if (!response?.ok) return undefined;
  const page = (await response.json().catch(() => undefined)) as { data?: unknown } | undefined;
  if (!Array.isArray(page?.data)) return undefined;
  return page.data.flatMap((model: { id?: unknown } | null) => (typeof model?.id === 'string' ? [model.id] : []));
}

async function isKnown(config: Config, model: string): Promise<boolean> {
  const response = await ask(config, `/v1/models/${encodeURIComponent(model)}`);
  return response?.status !== 404;
}

// An outage here is no reason to refuse a run: it waits for the model by itself.
async function ask({ baseUrl, apiKey, authToken }: Config, path: string): Promise<Response | undefined> {
  const headers = {
    'anthropic-version': API_VERSION,
    ...(apiKey.value && { 'x-api-key': apiKey.value.reveal() }),
    ...(authToken.value && { authorization: `Bearer ${authToken.value.reveal()}` }),
  };
  const url = `${(baseUrl.value ?? DEFAULT_BASE_URL).replace(/\/+$/, '')}${path}`;
  return fetch(url, { headers, signal: AbortSignal.timeout(ASK_TIMEOUT_MS) }).catch(() => undefined);
}

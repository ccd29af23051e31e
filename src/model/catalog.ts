import type Anthropic from '@anthropic-ai/sdk';
import type { ModelClient, TokenCounts } from './model.ts';

/** What is configured for one model; what is missing is asked of the server. */
export interface ModelSettings {
  readonly window?: number;
  readonly maxOutputTokens?: number;
  /** USD per million tokens. */
  readonly price?: {
    readonly input: number;
    readonly output: number;
    /** Default: a tenth of `input`. */
    readonly cacheRead?: number;
    /** Default: a quarter more than `input`. */
    readonly cacheWrite?: number;
  };
}

const DEFAULT_WINDOW = 200_000;
const DEFAULT_MAX_OUTPUT = 8192;
const LARGEST_MAX_OUTPUT = 32_000;
const LOOKUP_TIMEOUT_MS = 10_000;

interface ModelLimits {
  readonly window: number | undefined;
  readonly maxOutput: number | undefined;
}

/** What a model takes, gives and costs: configuration first, then the server, asked once for each model. */
export function createCatalog(
  sdk: Pick<Anthropic, 'models'>,
  settings: Readonly<Record<string, ModelSettings>>,
): Pick<ModelClient, 'window' | 'maxOutput' | 'price'> {
  const known = new Map<string, Promise<ModelLimits>>();
  const limits = (model: string): Promise<ModelLimits> => {
    const found = known.get(model) ?? lookUp(sdk, model, () => known.delete(model));
    known.set(model, found);
    return found;
  };
  return {
    window: async (model) => of(settings, model)?.window ?? (await limits(model)).window ?? DEFAULT_WINDOW,
    async maxOutput(model) {
      const configured = of(settings, model)?.maxOutputTokens;
      if (configured !== undefined) return configured;
      return Math.min((await limits(model)).maxOutput ?? DEFAULT_MAX_OUTPUT, LARGEST_MAX_OUTPUT);
    },
    price: (model, usage) => priceOf(of(settings, model), usage),
  };
}

function of(settings: Readonly<Record<string, ModelSettings>>, model: string): ModelSettings | undefined {
  return Object.hasOwn(settings, model) ? settings[model] : undefined;
}

/**
 * Many compatible servers have no such address, and then the defaults must do. An answer of any kind is remembered; a
 * server that cannot be reached is asked again next time.
 */
async function lookUp(sdk: Pick<Anthropic, 'models'>, model: string, forget: () => void): Promise<ModelLimits> {
  try {
    const info = await sdk.models.retrieve(model, null, { timeout: LOOKUP_TIMEOUT_MS });
    return { window: positive(info.max_input_tokens), maxOutput: positive(info.max_tokens) };
  } catch (error) {
    if (!isFinal(error)) forget();
    return { window: undefined, maxOutput: undefined };
  }
}

function isFinal(error: unknown): boolean {
  const status = error instanceof Error && 'status' in error ? error.status : undefined;
  return typeof status === 'number' && status >= 400 && status < 500 && ![401, 403, 408, 409, 429].includes(status);
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
}

function priceOf(settings: ModelSettings | undefined, usage: TokenCounts): number | null {
  const price = settings?.price;
  if (!price) return null;
  const { input, output, cacheRead = input / 10, cacheWrite = input * 1.25 } = price;
  const perMillion =
    usage.inputTokens * input +
    usage.outputTokens * output +
    usage.cacheReadTokens * cacheRead +
    usage.cacheWriteTokens * cacheWrite;
  return perMillion / 1_000_000;
}

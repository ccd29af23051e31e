import { isObject } from '../json.ts';
import type { JsonObject } from '../json.ts';

const KNOWN = new Set([
  'model',
  'max_tokens',
  'messages',
  'cache_control',
  'container',
  'diagnostics',
  'inference_geo',
  'metadata',
  'output_config',
  'service_tier',
  'speed',
  'stop_sequences',
  'stream',
  'system',
  'thinking',
  'tool_choice',
  'tools',
]);

/** Top-level fields: required ones present, each of the right type, none unknown. */
export function fieldsProblem(body: JsonObject, isCount: boolean): string | undefined {
  return (
    missingProblem(body, isCount ? ['model', 'messages'] : ['model', 'max_tokens', 'messages']) ??
    unknownFieldProblem(body, KNOWN, '') ??
    typeProblem(body) ??
    systemProblem(body.system)
  );
}

/** The first field that is not in the list, as the API words it. */
export function unknownFieldProblem(value: JsonObject, known: ReadonlySet<string>, path: string): string | undefined {
  const unknown = Object.keys(value).find((key) => !known.has(key));
  return unknown === undefined ? undefined : `${path}${unknown}: Extra inputs are not permitted`;
}

function missingProblem(body: JsonObject, names: readonly string[]): string | undefined {
  const missing = names.find((name) => body[name] === undefined);
  return missing === undefined ? undefined : `${missing}: Field required`;
}

function typeProblem(body: JsonObject): string | undefined {
  const { model, max_tokens: maxTokens, stream, tools } = body;
  if (typeof model !== 'string' || !model) return 'model: Input should be a non-empty string';
  if (maxTokens !== undefined && !Number.isInteger(maxTokens)) return 'max_tokens: Input should be a valid integer';
  if (typeof maxTokens === 'number' && maxTokens < 1) return 'max_tokens: Input should be greater than or equal to 1';
  if (stream !== undefined && typeof stream !== 'boolean') return 'stream: Input should be a valid boolean';
  if (tools !== undefined && !Array.isArray(tools)) return 'tools: Input should be a valid list';
  return undefined;
}

function systemProblem(system: unknown): string | undefined {
  if (system === undefined || typeof system === 'string') return undefined;
  if (!Array.isArray(system)) return 'system: Input should be a valid string or list';
  for (const [index, block] of system.entries()) {
    const isText = isObject(block) && block.type === 'text' && typeof block.text === 'string';
    if (!isText) return `system.${index}: Input should be a text block`;
    if (block.text === '') return `system.${index}: text content blocks must be non-empty`;
  }
  return undefined;
}

/** A model the simulator offers; both numbers are in tokens. */
export interface SimulatedModel {
  readonly maxInputTokens: number;
  readonly maxTokens: number;
}

export type Models = Readonly<Record<string, SimulatedModel>>;

export const DEFAULT_MODELS: Models = {
  'sim-1': { maxInputTokens: 200_000, maxTokens: 32_000 },
  'sim-small': { maxInputTokens: 20_000, maxTokens: 8_000 },
};

export function toModelInfo(id: string, model: SimulatedModel): Record<string, unknown> {
  return {
    type: 'model',
    id,
    display_name: `Simulator ${id}`,
    created_at: '2026-01-01T00:00:00Z',
    max_input_tokens: model.maxInputTokens,
    max_tokens: model.maxTokens,
    capabilities: null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
  };
}

export function toModelPage(models: Models): Record<string, unknown> {
  const data = Object.entries(models).map(([id, model]) => toModelInfo(id, model));
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

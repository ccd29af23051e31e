import Anthropic from '@anthropic-ai/sdk';
import type { Simulator } from '../../src/simulator/index.ts';

/** Builders for the requests these tests send. */
export const HEADERS = { 'x-api-key': 'any', 'anthropic-version': '2026-10-21' };

export const READ_TOOL = {
  name: 'read',
  description: 'Read a file',
  input_schema: { type: 'object' as const, properties: { file_path: { type: 'string' } } },
};

export function client(simulator: Simulator): Anthropic {
  return new Anthropic({ baseURL: simulator.url, apiKey: 'any', maxRetries: 0 });
}

export function prompt(text: string, tools: Anthropic.Tool[] = [READ_TOOL]): Anthropic.MessageCreateParamsNonStreaming {
  return { model: 'sim-1', max_tokens: 4000, tools, messages: [{ role: 'user', content: text }] };
}

/** The request after `reply`, each of its calls answered with the given text. */
export function answered(
  before: Anthropic.MessageCreateParamsNonStreaming,
  reply: Anthropic.Message,
  text = 'result',
): Anthropic.MessageCreateParamsNonStreaming {
  const results = reply.content
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({ type: 'tool_result' as const, tool_use_id: block.id, content: text }));
  const assistant = { role: 'assistant' as const, content: reply.content as Anthropic.ContentBlockParam[] };
  return { ...before, messages: [...before.messages, assistant, { role: 'user', content: results }] };
}

export function textOf(reply: Anthropic.Message): string {
  return reply.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

/** Waits until a condition holds; the test's own time limit is the bound. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

import { createModelClient } from './client.ts';
import type { ModelClientOptions } from './client.ts';
import { ModelError } from './model.ts';
import type { ModelClient } from './model.ts';

/**
 * Like `createModelClient`, but settings that cannot be used fail the calls and not the worker: the run that needs the
 * model ends at once and says why, and all else (closing, cancelling, running jobs) goes on.
 */
export function createModelClientOrExplain(options: ModelClientOptions): ModelClient {
  try {
    return createModelClient(options);
  } catch (error) {
    return createUnusableClient(error instanceof Error ? error.message : String(error));
  }
}

function createUnusableClient(reason: string): ModelClient {
  const message = `${reason} Set ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, then errand down and errand up.`;
  const refuse = async () => {
    throw new ModelError({ kind: 'auth', message, isSettled: true, wasSent: false });
  };
  return {
    send: refuse,
    listModels: refuse,
    window: async () => 200_000,
    maxOutput: async () => 8192,
    price: () => null,
  };
}

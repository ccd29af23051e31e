import { findQueue, type TemporalClient } from '../client.ts';
import type { Config } from '../config.ts';
import { knownHomeId } from '../home.ts';
import { taskQueue } from '../protocol.ts';
import { CliError } from './cli-error.ts';

/**
 * Several homes, and programs that are not errand, may share one Temporal server: what is not of this home is neither
 * followed nor told nor stopped from here. An id that the server does not know is left to whoever asks next.
 */
export async function assertOwnRun(config: Config, { client }: TemporalClient, workflowId: string): Promise<void> {
  const queue = await findQueue(client, workflowId);
  if (queue !== undefined) assertOwnQueue(config, workflowId, queue);
}

/** The same for a workflow that has been looked up. */
export function assertOwnQueue({ home }: Config, workflowId: string, queue: string): void {
  const id = knownHomeId(home.value);
  if (id !== undefined && queue === taskQueue(id)) return;
  throw new CliError(
    `${workflowId} is on this Temporal server, but not of this home (${home.value}): its task queue is ${queue}. ` +
      'Set ERRAND_HOME to the home that has started it.',
  );
}

import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import { loadConfig } from '../config.ts';
import { homeId } from '../home.ts';
import { taskQueue } from '../protocol.ts';
import { releaseWork } from './release-work.ts';
import type { Environment } from './worker-environment.ts';

/** A worker process that is known to be gone, with everything it was doing. */
export interface WorkerDeath {
  /** The name it had at the Temporal server. Never used again. */
  readonly identity: string;
  readonly cause: string;
  readonly home: string;
  /** Where the embedded server is; undefined: the workers' own settings say where their server is. */
  readonly address?: string;
  readonly environment: Environment;
  readonly log: (line: string) => void;
}

/**
 * Called by the supervisor for each worker that ended without having been told to, or had to be killed. The server does
 * not know yet: it would find out by heartbeat time-outs, seconds later, so it is told. May be called while the next
 * worker already starts. When the server cannot be told in time the time-outs do the same.
 */
export async function onWorkerDeath(death: WorkerDeath): Promise<void> {
  const { identity, cause, log } = death;
  log(`worker ${identity} ${cause}`);
  const deadline = Date.now() + TELL_WITHIN_MS;
  for (;;) {
    try {
      const released = await tellServer(death, deadline);
      if (released > 0) log(`${released} activities of worker ${identity} were given to other workers`);
      return;
    } catch (error) {
      // The server may have died with the worker and be on its way back.
      if (Date.now() + RETRY_MS >= deadline) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Twice the heartbeat time-out: after that the server knows by itself. */
const TELL_WITHIN_MS = 20_000;
const RETRY_MS = 250;

async function tellServer({ identity, home, ...server }: WorkerDeath, deadline: number): Promise<number> {
  const { namespace, options } = connectionTo(server);
  const connection = await Connection.connect(options);
  try {
    const client = new Client({ connection, namespace });
    const giveUpAfterMs = Math.max(0, deadline - Date.now());
    const queue = taskQueue(homeId(home));
    return await connection.withDeadline(deadline, () =>
      releaseWork({ client, namespace, identity, queue, giveUpAfterMs }),
    );
  } finally {
    await connection.close();
  }
}

function connectionTo({ address, environment }: Pick<WorkerDeath, 'address' | 'environment'>) {
  const connectTimeout = 2_000;
  if (address !== undefined) return { namespace: 'default', options: { address, connectTimeout } };
  const { connection, namespace } = loadConfig({ env: environment }).temporal;
  // The profile's options are the worker's; the client takes the same names.
  return { namespace: namespace.value, options: { ...connection, connectTimeout } as ConnectionOptions };
}

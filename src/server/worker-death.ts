/** A worker process that is known to be gone, with everything it was doing. */
export interface WorkerDeath {
  /** The name it had at the Temporal server. Never used again. */
  readonly identity: string;
  /** Where the server is; undefined: another server than the embedded one. */
  readonly address?: string;
  readonly cause: string;
  readonly log: (line: string) => void;
}

/**
 * Called by the supervisor for each worker that ended without having been told to, or had to be killed. The server does
 * not know yet: it finds out by heartbeat time-outs. May be called while the next worker already starts.
 */
export async function onWorkerDeath({ identity, cause, log }: WorkerDeath): Promise<void> {
  log(`worker ${identity} ${cause}`);
}

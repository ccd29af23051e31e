/** What is needed of Temporal's worker. */
export interface LivingWorker {
  /** Resolves when it has ended, with all that it did. */
  run(): Promise<void>;
  /** Takes no more work; what it does goes on. */
  shutdown(): void;
}

export interface WorkerLivesOptions {
  readonly create: () => Promise<LivingWorker>;
  readonly server: {
    whenLost(signal: AbortSignal): Promise<void>;
    whenBack(signal: AbortSignal): Promise<void>;
  };
  /** Aborted when the process is told to end; each worker hears that by itself. */
  readonly shutdown: AbortSignal;
  /** Called each time one takes work. */
  readonly onAlive: (worker: LivingWorker) => void;
  readonly warn: (line: string) => void;
}

/**
 * Works until told to end. A server that went away may come back with an older database. A worker that lived through
 * that holds workflows which are ahead of it, and answers their next task from memory with commands that the history
 * will contradict for ever. So with the server goes all that is remembered of its workflows: another worker takes over
 * once it is back, and the first only ends what it is doing.
 */
export async function liveWithServer(options: WorkerLivesOptions): Promise<void> {
  const { create } = options;
  const lives: Promise<void>[] = [];
  for (let worker: LivingWorker | undefined = await create(); worker !== undefined; worker = await nextLife(options)) {
    const life = worker.run();
    // Told to end while it was being made: nobody tells it again.
    if (options.shutdown.aborted) worker.shutdown();
    options.onAlive(worker);
    const isLost = await outlivesServer(options, life);
    lives.push(isLost ? life.catch(reportTo(options)) : life);
    if (!isLost) break;
    options.warn('the server is gone; what is remembered of its workflows goes too');
    worker.shutdown();
  }
  await Promise.all(lives);
}

// One that cannot even end in order takes nobody with it: its successors have open calls of their own.
function reportTo({ warn }: WorkerLivesOptions) {
  return (error: unknown) => warn(`the worker from before the server was lost ended badly: ${toMessage(error)}`);
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** True once the server is lost; false when the process is to end, or the worker ended by itself. */
async function outlivesServer({ server, shutdown }: WorkerLivesOptions, life: Promise<void>): Promise<boolean> {
  const over = new AbortController();
  const signal = AbortSignal.any([shutdown, over.signal]);
  try {
    return await Promise.race([life.then(() => false), server.whenLost(signal).then(() => !signal.aborted)]);
  } finally {
    over.abort();
  }
}

async function nextLife({ create, server, shutdown, warn }: WorkerLivesOptions): Promise<LivingWorker | undefined> {
  while (!shutdown.aborted) {
    await server.whenBack(shutdown);
    if (shutdown.aborted) return undefined;
    try {
      return await create();
    } catch (error) {
      warn(`cannot work yet: ${toMessage(error)}`);
    }
  }
  return undefined;
}

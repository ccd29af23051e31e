import { onWorkerDeath } from '../../src/server/worker-death.ts';
import type { Harness, Worker } from './harness.ts';

/** Kills workers and tells the server, as their supervisor would: nobody waits for a heartbeat time-out. */
export async function loseWorkers(harness: Harness, workers: readonly Worker[] = harness.workers): Promise<void> {
  const living = workers.filter(({ process }) => process.exitCode === null && process.signalCode === null);
  await Promise.all(living.map((worker) => worker.kill('SIGKILL')));
  await Promise.all(living.map((worker) => tellOfDeath(harness, worker)));
}

/** Tells the server of one that is dead. */
export async function tellOfDeath({ home, environment }: Harness, { identity }: Worker): Promise<void> {
  await onWorkerDeath({ identity, cause: 'was killed', home, environment, log: () => undefined });
}

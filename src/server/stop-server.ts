import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { allInstances, instanceOf, type Instance, type OtherServer } from './instance.ts';
import { readLiveState, readState } from './instance-state.ts';
import { stopLeftovers } from './leftovers.ts';
import { readLock } from './life-lock.ts';
import { isAlive, signalProcess, type ProcessIdentity } from './process-identity.ts';
import { waitUntil } from './wait.ts';

export interface StopServerOptions {
  readonly home: string;
  readonly log: (line: string) => void;
  /** Only the workers of this server. Default: everything of this home. */
  readonly other?: OtherServer;
}

/**
 * Stops workers, then the Temporal server, then their supervisor, and resolves when all of it is gone, also what a
 * killed supervisor left. Does nothing where nothing runs.
 */
export async function stopServer({ home, log, other }: StopServerOptions): Promise<void> {
  const absolute = resolve(home);
  const instances = other ? [instanceOf(absolute, other)] : allInstances(absolute);
  await Promise.all(instances.map((instance) => stopInstance({ instance, log })));
}

/** The same for one instance. */
export async function stopInstance({
  instance,
  log,
}: {
  instance: Instance;
  log: (line: string) => void;
}): Promise<void> {
  const supervisor = readLock(instance.lock);
  if (supervisor) await endSupervisor(instance, supervisor, log);
  if (readLiveState(instance)) return;
  await stopLeftovers({ instance, state: readState(instance), graceMs: LEFTOVER_GRACE_MS, log });
  if (!readLock(instance.lock))
    for (const file of [instance.lock, instance.control, instance.state]) rmSync(file, { force: true });
}

const LEFTOVER_GRACE_MS = 20_000;

// The supervisor's own time limits end far below this; one that exceeds it hangs, or was stopped by SIGSTOP.
const SUPERVISOR_ENDS_WITHIN_MS = 60_000;

async function endSupervisor(
  instance: Instance,
  supervisor: ProcessIdentity,
  log: (line: string) => void,
): Promise<void> {
  const workers = readState(instance)?.workers.filter(({ process }) => process).length ?? 0;
  log(
    `stopping ${workers} workers${instance.database && readState(instance)?.embedded ? ' and the Temporal server' : ''}`,
  );
  signalProcess(supervisor, 'SIGTERM');
  const isGone = () => !isAlive(supervisor);
  if (await waitUntil(isGone, { timeoutMs: SUPERVISOR_ENDS_WITHIN_MS })) return;
  log(`the supervisor (pid ${supervisor.pid}) does not end; killing it`);
  signalProcess(supervisor, 'SIGKILL');
  await waitUntil(isGone, { timeoutMs: 5_000 });
}

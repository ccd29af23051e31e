import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../config.ts';
import { placeOf } from '../home.ts';
import { isAlive, isSameProcess, signalProcess, type ProcessIdentity } from '../process-identity.ts';
import { allInstances, instanceOf, type Instance, type OtherServer } from './instance.ts';
import { readLiveState, readState, type InstanceState } from './instance-state.ts';
import { stopLeftovers } from './leftovers.ts';
import { readLock, releaseLock, takeLock } from './life-lock.ts';
import { waitUntil } from './wait.ts';
import { homeTrouble } from './whose-home.ts';

export interface StopServerOptions {
  readonly home: string;
  readonly log: (line: string) => void;
  /** Only the workers of this server. Default: everything of this home. */
  readonly other?: OtherServer;
}

/**
 * Stops workers, then the Temporal server, then their supervisor, and resolves when all of it is gone, also what a
 * killed supervisor left. Does nothing where nothing runs. Throws ConfigError in a copy whose original runs.
 */
export async function stopServer({ home, log, other }: StopServerOptions): Promise<void> {
  const absolute = resolve(home);
  assertMayStop(absolute);
  const instances = other ? [instanceOf(absolute, other)] : allInstances(absolute);
  await Promise.all(instances.map((instance) => stopInstance({ instance, log })));
}

function assertMayStop(home: string): void {
  const trouble = homeTrouble(home);
  if (trouble?.kind !== 'copy') return;
  const { path } = trouble;
  throw new ConfigError(
    `${home} is a copy of ${path}, and what runs belongs to the original: nothing was stopped. ` +
      `ERRAND_HOME=${path} errand down stops it.`,
  );
}

export interface StopInstanceOptions {
  readonly instance: Instance;
  readonly log: (line: string) => void;
}

/** The same for one instance. */
export async function stopInstance({ instance, log }: StopInstanceOptions): Promise<void> {
  if (!existsSync(instance.folder)) return;
  const isOurs = await endSupervisor(instance, log);
  if (!isOurs) return;
  try {
    await stopLeftovers({ instance, state: readState(instance), graceMs: LEFTOVER_GRACE_MS, log });
    for (const file of [instance.control, instance.state]) rmSync(file, { force: true });
  } finally {
    releaseLock(instance.lock);
  }
}

const LEFTOVER_GRACE_MS = 20_000;

// The supervisor's own time limits end far below this; one that exceeds it hangs, or was stopped by SIGSTOP.
const SUPERVISOR_ENDS_WITHIN_MS = 60_000;

/**
 * Ends the supervisor there is, and takes the instance's lock in its place, so that nobody starts anything while its
 * leftovers are cleared. False if somebody did start a new one right after: that one is wanted.
 */
async function endSupervisor(instance: Instance, log: (line: string) => void): Promise<boolean> {
  const deadline = performance.now() + 2 * SUPERVISOR_ENDS_WITHIN_MS;
  let ended: ProcessIdentity | undefined;
  while (!takeLock(instance.lock, placeOf(instance.home))) {
    const state = readLiveState(instance);
    if (state && ended && !isSameProcess(state.supervisor, ended)) return false;
    if (state && !ended) await end((ended = state.supervisor), state, log);
    // Otherwise one is about to write its state, or another stop is clearing up.
    else await sleep(25);
    if (performance.now() > deadline) throw new Error(holdsOn(instance));
  }
  return true;
}

async function end(supervisor: ProcessIdentity, state: InstanceState, log: (line: string) => void): Promise<void> {
  const workers = state.workers.filter(({ process }) => process).length;
  log(`stopping ${workers} workers${state.embedded ? ' and the Temporal server' : ''}`);
  signalProcess(supervisor, 'SIGTERM');
  const isGone = () => !isAlive(supervisor);
  if (await waitUntil(isGone, { timeoutMs: SUPERVISOR_ENDS_WITHIN_MS })) return;
  log(`the supervisor (pid ${supervisor.pid}) does not end; killing it`);
  signalProcess(supervisor, 'SIGKILL');
  await waitUntil(isGone, { timeoutMs: 5_000 });
}

function holdsOn({ lock }: Instance): string {
  return `Process ${readLock(lock)?.pid} holds ${lock} and does not let go. End it, then run "errand down" again.`;
}

import { readdirSync, readFileSync } from 'node:fs';
import { identifyProcess, isAlive, signalProcess, type ProcessIdentity } from '../process-identity.ts';
import type { Instance } from './instance.ts';
import type { InstanceState } from './instance-state.ts';
import { leftWorkers } from './unrecorded-workers.ts';
import { waitUntil } from './wait.ts';

const SERVER_GRACE_MS = 10_000;

export interface StopLeftoversOptions {
  readonly instance: Instance;
  readonly state: InstanceState | undefined;
  readonly graceMs: number;
  readonly log: (line: string) => void;
}

/** Ends what a dead supervisor left running, in order: workers, then the Temporal server. Strangers are safe. */
export async function stopLeftovers({ instance, state, graceMs, log }: StopLeftoversOptions): Promise<void> {
  const workers = leftWorkers(instance, state)
    .flatMap(({ process }) => process ?? [])
    .filter(isAlive);
  if (workers.length > 0) log(`stopping ${workers.length} workers whose supervisor was killed`);
  await stopProcesses(workers, graceMs);
  await stopLeftoverServer({ instance, state, log });
}

/** Ends the Temporal server that a dead supervisor left. Two on one database would be the end of it. */
export async function stopLeftoverServer({
  instance,
  state,
  log,
}: Omit<StopLeftoversOptions, 'graceMs'>): Promise<void> {
  const servers = uniqueByPid([...[state?.temporal?.process ?? []].flat(), ...serversOn(instance.database)]).filter(
    isAlive,
  );
  if (servers.length > 0) log('stopping the Temporal server whose supervisor was killed');
  await stopProcesses(servers, SERVER_GRACE_MS);
}

/** SIGTERM, then SIGKILL after the grace time. Resolves when all are gone. */
export async function stopProcesses(processes: readonly ProcessIdentity[], graceMs: number): Promise<void> {
  for (const one of processes) signalProcess(one, 'SIGTERM');
  const areGone = () => !processes.some(isAlive);
  if (await waitUntil(areGone, { timeoutMs: graceMs })) return;
  for (const one of processes) signalProcess(one, 'SIGKILL');
  if (await waitUntil(areGone, { timeoutMs: 5_000 })) return;
  const pids = processes.filter(isAlive).map(({ pid }) => pid);
  throw new Error(
    `Processes ${pids.join(', ')} do not end even by SIGKILL. Look what holds them: ps -o pid,stat,wchan,args -p ${pids.join(',')}`,
  );
}

// A supervisor can be killed between starting the server and writing that down. Two servers on one database would be the
// end of it, so whoever has it on its command line is looked for too, where the system lets us look.
function serversOn(database: string): ProcessIdentity[] {
  if (process.platform !== 'linux') return [];
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter((pid) => isServerOn(pid, database)).flatMap((pid) => identifyProcess(pid) ?? []);
}

function isServerOn(pid: number, database: string): boolean {
  const words = commandLine(pid);
  const at = words.indexOf('--db-filename');
  return at > 0 && words[at + 1] === database && words.includes('start-dev');
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

function uniqueByPid(processes: readonly ProcessIdentity[]): ProcessIdentity[] {
  return [...new Map(processes.map((one) => [one.pid, one])).values()];
}

import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { identifyProcess, isAlive } from '../process-identity.ts';
import type { Instance } from './instance.ts';
import type { InstanceState, WorkerRecord } from './instance-state.ts';

/**
 * Workers that a supervisor left behind: those of its state file, and those it was killed over before it had written them
 * down, or could not because the disk was full. Nobody would ever end these: without their server they wait for it. They
 * are known by the folder they work in and by the name they were given, where the system lets us look. Only for whoever
 * holds the instance's lock: every worker of a living supervisor is its own.
 */
export function leftWorkers(instance: Instance, state: InstanceState | undefined): WorkerRecord[] {
  const recorded = state?.workers ?? [];
  const pids = new Set(recorded.map(({ process }) => process?.pid));
  return [...recorded, ...workersIn(instance.folder).filter(({ process }) => !pids.has(process?.pid))];
}

function workersIn(folder: string): WorkerRecord[] {
  if (process.platform !== 'linux') return [];
  const real = ifAllowed(() => realpathSync(folder));
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger);
  return pids.filter((pid) => pid !== process.pid).flatMap((pid) => workerIn(real, pid) ?? []);
}

function workerIn(folder: string | undefined, pid: number): WorkerRecord | undefined {
  if (folder === undefined || ifAllowed(() => readlinkSync(`/proc/${pid}/cwd`)) !== folder) return undefined;
  const variables = (ifAllowed(() => readFileSync(`/proc/${pid}/environ`, 'utf8')) ?? '').split('\0');
  const valueOf = (name: string) => variables.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
  const [identity, name = 'worker'] = [valueOf('ERRAND_WORKER_IDENTITY'), valueOf('ERRAND_WORKER_NAME')];
  const process = identifyProcess(pid);
  if (identity === undefined || process === undefined || !isAlive(process)) return undefined;
  return { name, process, identity, phase: 'draining', restarts: 0, buildId: '' };
}

/** Undefined for what has ended since it was listed, and for what belongs to somebody else. */
function ifAllowed<Value>(look: () => Value): Value | undefined {
  try {
    return look();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

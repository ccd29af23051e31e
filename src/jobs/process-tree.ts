import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { identifyProcess, isAlive, readStatFields, type ProcessIdentity } from '../process-identity.ts';

/** Name of the environment variable every process of a job inherits. */
export const JOB_MARKER = 'ERRAND_JOB_ID';

/** Pids of all processes that carry the job's marker, on Linux; elsewhere none can be found. */
export function findMarked(jobId: string): readonly number[] {
  const marker = `${JOB_MARKER}=${jobId}`;
  return listPids().filter((pid) => pid !== process.pid && environmentOf(pid).split('\0').includes(marker));
}

/** Pids of the descendants of processes and of the members of their sessions. */
function findTree(roots: readonly number[]): readonly number[] {
  const stats = listPids().flatMap((pid) => {
    const fields = readStatFields(pid);
    const isRunning = fields !== undefined && fields[0] !== 'Z' && fields[0] !== 'X';
    return isRunning ? [{ pid, parent: Number(fields[1]), session: Number(fields[3]) }] : [];
  });
  const isRoot = (id: number) => roots.includes(id);
  const found = new Set(stats.filter(({ pid, session }) => isRoot(pid) || isRoot(session)).map(({ pid }) => pid));
  for (let before = 0; before !== found.size;) {
    before = found.size;
    for (const { pid, parent } of stats) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter((pid) => pid !== process.pid);
}

/**
 * Finds the processes of a job: what descends from its first one, what carries its marker, and what was found before,
 * though it has since left its session, its parents and its environment behind.
 */
export function createJobFinder(first: number, jobId: string): () => readonly number[] {
  let known: readonly ProcessIdentity[] = [];
  return () => {
    const roots = [first, ...known.filter(isAlive).map(({ pid }) => pid)];
    const found = [...new Set([...findTree(roots), ...findMarked(jobId)])];
    known = found.flatMap((pid) => identifyProcess(pid) ?? []);
    return found;
  };
}

/** Sends a signal to each; one that is gone already is no trouble. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Kills what `find` names until it names nothing more: a process may fork while it is being looked for. */
export async function killUntilGone(find: () => readonly number[], limitMs = 5_000): Promise<readonly number[]> {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const left = find();
    if (left.length === 0 || Date.now() > deadline) return left;
    signalAll(left, 'SIGKILL');
    await sleep(10);
  }
}

function listPids(): readonly number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 0);
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch (error) {
    // Other people's processes, and those that have just ended.
    if (['EACCES', 'EPERM', 'ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

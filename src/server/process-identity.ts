import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One process for ever: a pid alone may belong to somebody else tomorrow. Plain JSON, made to be kept in files. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process started, in the platform's own terms; only good for comparing. */
  readonly startedAt: string;
  /** The boot it started in; empty where the platform has no name for it. */
  readonly bootId: string;
}

/** Names the process that has this pid now; undefined if there is none. A zombie still has a name. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const facts = readFacts(pid);
  return facts && { pid, startedAt: facts.startedAt, bootId: bootId() };
}

/** Whether exactly this process still runs. A zombie does not: it is only waiting to be collected. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (identity.bootId !== bootId()) return false;
  const facts = readFacts(identity.pid);
  return facts !== undefined && facts.startedAt === identity.startedAt && !facts.isZombie;
}

/** Whether both name the same process. */
export function isSameProcess(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.startedAt === other.startedAt && one.bootId === other.bootId;
}

/** Sends a signal to exactly this process; false if it no longer runs. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Reads an identity out of parsed JSON; undefined if it is none. */
export function toProcessIdentity(value: unknown): ProcessIdentity | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, startedAt, bootId } = value as Record<string, unknown>;
  const isComplete = Number.isInteger(pid) && typeof startedAt === 'string' && typeof bootId === 'string';
  return isComplete ? { pid: pid as number, startedAt, bootId } : undefined;
}

interface ProcessFacts {
  readonly startedAt: string;
  readonly isZombie: boolean;
}

function readFacts(pid: number): ProcessFacts | undefined {
  return process.platform === 'linux' ? readProcStat(pid) : askPs(pid);
}

// The command's name is in brackets and may hold spaces and brackets itself, so fields are counted from the last one:
// the state is field 3 of proc(5), the start time field 22.
function readProcStat(pid: number): ProcessFacts | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startedAt] = [fields[0], fields[22 - 3]];
  return startedAt === undefined ? undefined : { startedAt, isZombie: state === 'Z' || state === 'X' };
}

function askPs(pid: number): ProcessFacts | undefined {
  try {
    const answer = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const [state = '', ...startedAt] = answer.split(/\s+/);
    return { startedAt: startedAt.join(' '), isZombie: state.startsWith('Z') };
  } catch (error) {
    if ((error as { status?: number }).status === 1) return undefined;
    throw error;
  }
}

let knownBootId: string | undefined;

function bootId(): string {
  knownBootId ??= readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  return knownBootId;
}

// A process may end between opening and reading its file: that is ESRCH.
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One process for good: a pid alone is used again. Plain JSON, made to be kept in files. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the platform's own terms; only good for comparing. */
  readonly startTime: string;
  /** Id of the boot: pids and start times begin anew with each. Empty where the platform has none. */
  readonly bootId: string;
}

/** Names the process that has this pid now; undefined if there is none. A zombie still has a name. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const facts = readFacts(pid);
  return facts && { pid, startTime: facts.startTime, bootId: bootId() };
}

/** Identity of this process. */
export function ownIdentity(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (!identity) throw new Error(`Process ${process.pid} cannot read its own start time: is /proc mounted?`);
  return identity;
}

/** Whether exactly this process still runs. A zombie does not: it is only waiting to be collected. */
export function isAlive(identity: ProcessIdentity): boolean {
  const facts = readFacts(identity.pid);
  if (facts === undefined || facts.isZombie) return false;
  return isSameProcess({ pid: identity.pid, startTime: facts.startTime, bootId: bootId() }, identity);
}

/** Whether both name the same process. */
export function isSameProcess(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.startTime === other.startTime && isSameBoot(one.bootId, other.bootId);
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

/** Reads an identity out of parsed JSON, in the spelling of earlier files (`startedAt`) too; undefined if it is none. */
export function toProcessIdentity(value: unknown): ProcessIdentity | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, startedAt, startTime = startedAt, bootId } = value as Record<string, unknown>;
  const isComplete = Number.isInteger(pid) && typeof startTime === 'string' && typeof bootId === 'string';
  return isComplete ? { pid: pid as number, startTime: inOneSpacing(startTime), bootId } : undefined;
}

/** Fields of `/proc/<pid>/stat` after the command name, which may itself hold blanks and brackets. */
export function readStatFields(pid: number): readonly string[] | undefined {
  const text = readIfThere(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

// Earlier files have no boot where it was not looked up; there the start time is a date, which says enough.
function isSameBoot(one: string, other: string): boolean {
  return one === other || (process.platform !== 'linux' && (one === '' || other === ''));
}

interface ProcessFacts {
  readonly startTime: string;
  readonly isZombie: boolean;
}

function readFacts(pid: number): ProcessFacts | undefined {
  return process.platform === 'linux' ? readProcStat(pid) : askPs(pid);
}

// The state is field 3 of proc(5), the start time field 22.
function readProcStat(pid: number): ProcessFacts | undefined {
  const fields = readStatFields(pid);
  const [state, startTime] = [fields?.[0], fields?.[22 - 3]];
  return startTime === undefined ? undefined : { startTime, isZombie: state === 'Z' || state === 'X' };
}

function askPs(pid: number): ProcessFacts | undefined {
  try {
    const answer = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const [state = '', ...startTime] = answer.split(/\s+/);
    return { startTime: startTime.join(' '), isZombie: state.startsWith('Z') };
  } catch (error) {
    // ps answers "no such process" with exit code 1.
    if ((error as { status?: number }).status === 1) return undefined;
    throw error;
  }
}

function inOneSpacing(text: string): string {
  return text.split(/\s+/).join(' ');
}

let knownBootId: string | undefined;

function bootId(): string {
  knownBootId ??= readBootId();
  return knownBootId;
}

function readBootId(): string {
  if (process.platform !== 'darwin') return readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim();
}

// A process may end between opening and reading its file: that is ESRCH.
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

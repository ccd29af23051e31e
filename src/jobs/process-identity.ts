import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Names one process for good: a pid alone is used again. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the kernel's own unit, as text. */
  readonly startTime: string;
  /** Id of the boot: pids and start times begin anew with each. */
  readonly bootId: string;
}

/** Identity of a running process; undefined when there is none with this pid (a zombie counts as none). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startTime = process.platform === 'linux' ? linuxStartTime(pid) : psStartTime(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId() };
}

/** Identity of this process. */
export function ownIdentity(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (!identity) throw new Error(`Process ${process.pid} cannot read its own start time: is /proc mounted?`);
  return identity;
}

/** Whether the very process named is still running. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now !== undefined && now.startTime === identity.startTime && now.bootId === identity.bootId;
}

/** Fields of `/proc/<pid>/stat` after the command name, which may itself hold blanks and brackets. */
export function readStatFields(pid: number): readonly string[] | undefined {
  const text = readIfThere(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

let knownBootId: string | undefined;

function bootId(): string {
  knownBootId ??=
    process.platform === 'linux'
      ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      : execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim();
  return knownBootId;
}

function linuxStartTime(pid: number): string | undefined {
  const fields = readStatFields(pid);
  if (!fields || fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return fields[19];
}

function psStartTime(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    // ps answers "no such process" with exit code 1.
    return undefined;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

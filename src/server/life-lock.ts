import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { toHomePlace, type HomePlace } from '../home.ts';
import { isAlive, ownIdentity, toProcessIdentity, type ProcessIdentity } from '../process-identity.ts';

/**
 * Takes a lock that this process holds until it releases it or dies, however it dies. False if another living process
 * has it. The lock is a file with the holder's identity, made visible whole by a link that only one process can make.
 * `home` is written into it, so that a copy of the file says whose it is.
 */
export function takeLock(file: string, home?: HomePlace): boolean {
  if (linkIdentity(file, home)) return true;
  if (readLock(file)) return false;
  return breakStaleLock(file) && linkIdentity(file, home);
}

/** The living process that holds the lock; undefined if nobody does. */
export function readLock(file: string): ProcessIdentity | undefined {
  const holder = readHolder(file);
  return holder && isAlive(holder) ? holder : undefined;
}

/** The home that the lock was taken in; undefined if it does not say. */
export function readLockHome(file: string): HomePlace | undefined {
  return toHomePlace(readLockFile(file)?.['home']);
}

/** Gives the lock back; one that somebody else holds is left alone. */
export function releaseLock(file: string): void {
  if (readHolder(file)?.pid === process.pid) rmSync(file, { force: true });
}

// Two processes that find the same dead holder must not remove each other's fresh lock: only the one that holds the
// breaker may remove, and it looks again first. The breaker lives for microseconds; one whose holder died is removed.
function breakStaleLock(file: string): boolean {
  const breaker = `${file}.breaker`;
  if (!linkIdentity(breaker)) {
    if (!readLock(breaker)) rmSync(breaker, { force: true });
    return false;
  }
  try {
    if (readLock(file)) return false;
    rmSync(file, { force: true });
    return true;
  } finally {
    rmSync(breaker, { force: true });
  }
}

function linkIdentity(file: string, home?: HomePlace): boolean {
  const draft = `${file}.${process.pid}.${randomUUID()}`;
  writeFileSync(draft, JSON.stringify({ ...ownIdentity(), home }), { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function readHolder(file: string): ProcessIdentity | undefined {
  return toProcessIdentity(readLockFile(file));
}

function readLockFile(file: string): Record<string, unknown> | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) ?? undefined) as Record<string, unknown> | undefined;
  } catch (error) {
    const isNoLock = (error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError;
    if (isNoLock) return undefined;
    throw error;
  }
}

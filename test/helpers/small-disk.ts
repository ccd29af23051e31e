import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why there can be no small disk here; undefined if there can. Mounting needs root. */
export function smallDiskProblem(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'errand-mount-'));
  try {
    mountSmallDisk(folder);
    unmount(folder);
    return undefined;
  } catch (error) {
    return `a tmpfs cannot be mounted: ${String(error).slice(0, 200)}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function mountSmallDisk(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=700', 'tmpfs', folder], { stdio: 'pipe' });
}

export function remount(folder: string, mode: 'ro' | 'rw'): boolean {
  try {
    execFileSync('mount', ['-o', `remount,${mode}`, folder], { stdio: 'pipe' });
    return true;
  } catch {
    return false; // Busy: a file is open for writing just now.
  }
}

/** Makes a folder read-only to whoever opens a file from now on, as a broken disk does, also under those who write. */
export function cover(folder: string): void {
  execFileSync('mount', ['--bind', folder, folder], { stdio: 'pipe' });
  execFileSync('mount', ['-o', 'remount,ro,bind', folder], { stdio: 'pipe' });
}

export function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder], { stdio: 'pipe' });
}

/** Writes until nothing more fits, then gives some bytes back. */
export function fill(folder: string, leaveBytes = 0): void {
  const file = openSync(fillerOf(folder), 'a');
  const page = Buffer.alloc(4096);
  try {
    for (;;) writeSync(file, page);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
    truncateSync(fillerOf(folder), statSync(fillerOf(folder)).size - leaveBytes);
  }
}

export function makeRoom(folder: string): void {
  rmSync(fillerOf(folder));
}

function fillerOf(folder: string): string {
  return join(folder, 'filler');
}

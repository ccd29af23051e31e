import { cp, lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Takes guarded paths that a command created out of the workspace, into a folder of the job, and names them. Bubblewrap
 * can protect only what exists without leaving empty folders behind in everybody's workspace; so the rest is looked at
 * when every process of the job is gone.
 */
export async function moveAside(guarded: readonly string[], into: string): Promise<readonly string[]> {
  const moved: string[] = [];
  for (const [index, path] of guarded.entries()) {
    if (!(await isThere(path))) continue;
    await mkdir(into, { recursive: true, mode: 0o700 });
    // Copied, because the workspace is often on another disk.
    await cp(path, join(into, String(index)), { recursive: true, verbatimSymlinks: true });
    await rm(path, { recursive: true, force: true });
    moved.push(path);
  }
  return moved;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

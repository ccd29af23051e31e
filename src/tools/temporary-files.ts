import { createHash, randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { readdir, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from './path-problem.ts';
import { openFolder, realPathInside } from './paths.ts';
import type { PathScope } from './walk.ts';
import { entryPath } from './walk.ts';

/** Names of temporary files; search leaves them out. */
export const TEMP_GLOB = '.errand-*.tmp';
const TEMP_NAME = /^\.errand-(\d+)-([0-9a-f]+)\.tmp$/;

/** `call` names whose change it is: whoever takes the call over can tell the file from those of others. */
export function tempName(call: string): string {
  return `.errand-${process.pid}-${markOf(call)}${randomBytes(6).toString('hex')}.tmp`;
}

/** Temporary files of workers that were killed while writing into this folder. */
export function removeOrphans(folder: FileHandle, folderPath: string): Promise<void> {
  return removeTemporaries(folder, folderPath, (pid) => !isAlive(pid));
}

/**
 * Takes from another attempt at a call what it was about to put in place of `path`: when that attempt, stopped between
 * its last question and the rename, goes on, there is nothing left to rename. Called by whoever holds the call now.
 */
export async function removeTemporariesOf(call: string, path: string, roots: readonly string[]): Promise<void> {
  const scope: PathScope = { workspace: '/', roots };
  const { stat, realPath } = await realPathInside(dirname(path), scope);
  if (!stat?.isDirectory()) return;
  const { folder } = await openFolder(realPath, scope);
  try {
    await removeTemporaries(folder, realPath, (_pid, rest) => rest.startsWith(markOf(call)));
  } finally {
    await folder.close();
  }
}

export async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

async function removeTemporaries(
  folder: FileHandle,
  folderPath: string,
  isOurs: (pid: number, rest: string) => boolean,
): Promise<void> {
  for (const name of await readdir(entryPath(folder, folderPath, '.'))) {
    const [, pid, rest] = TEMP_NAME.exec(name) ?? [];
    if (pid === undefined || rest === undefined || !isOurs(Number(pid), rest)) continue;
    await removeIfThere(entryPath(folder, folderPath, name));
  }
}

function markOf(call: string): string {
  return createHash('sha256').update(call).digest('hex').slice(0, 12);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error, 'ESRCH');
  }
}

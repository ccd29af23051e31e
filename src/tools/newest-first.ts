import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hasCode } from './path-problem.ts';

const STATS_AT_ONCE = 64;

/** Sorts paths, which may be relative to `folder`, by the time of the last change; equal times by name. */
export async function newestFirst(paths: readonly string[], folder: string): Promise<readonly string[]> {
  const dated: { readonly path: string; readonly mtimeMs: number }[] = [];
  for (let at = 0; at < paths.length; at += STATS_AT_ONCE) {
    const some = paths.slice(at, at + STATS_AT_ONCE);
    const times = await Promise.all(some.map((path) => changedAtMs(resolve(folder, path))));
    dated.push(...some.map((path, index) => ({ path, mtimeMs: times[index] ?? 0 })));
  }
  return dated.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1)).map(({ path }) => path);
}

/** 0 for a file that has gone since it was listed. */
async function changedAtMs(path: string): Promise<number> {
  try {
    return (await lstat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ENAMETOOLONG')) return 0;
    throw error;
  }
}

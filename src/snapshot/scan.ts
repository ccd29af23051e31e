import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { runGit, type ShadowGit } from './git.ts';

/** A workspace larger than this gets no snapshot. */
export const MAX_SNAPSHOT_FILES = 50_000;
export const MAX_SNAPSHOT_BYTES = 1024 ** 3;

const SCAN_TIMEOUT_MS = 30_000;
const MAX_LISTING_BYTES = 32 * 1024 * 1024;
const STATS_AT_ONCE = 64;

/** What git would put into a snapshot, and why it cannot be taken. */
export interface Scan {
  /** Folders with a repository of their own, relative to the workspace; they are left out. */
  readonly nestedRepositories: readonly string[];
  /** Present: there is too much to take. */
  readonly problem?: string;
}

/** Lists what is there, ignored files left out, and stops as soon as it is too much. */
export async function scanWorkspace(git: ShadowGit): Promise<Scan> {
  const listing = ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const { stdout, cut } = await runGit(git, listing, { timeoutMs: SCAN_TIMEOUT_MS, maxBytes: MAX_LISTING_BYTES });
  const paths = stdout.toString('utf8').split('\0').filter(Boolean);
  const nestedRepositories = paths.filter((path) => path.endsWith('/'));
  if (cut || paths.length > MAX_SNAPSHOT_FILES) {
    return { nestedRepositories, problem: `it has more than ${MAX_SNAPSHOT_FILES} files that are not ignored` };
  }
  const tooLarge = await exceedsBytes(git.workspace, paths);
  return tooLarge ? { nestedRepositories, problem: 'its files are more than 1 GiB' } : { nestedRepositories };
}

async function exceedsBytes(workspace: string, paths: readonly string[]): Promise<boolean> {
  let bytes = 0;
  for (let from = 0; from < paths.length && bytes <= MAX_SNAPSHOT_BYTES; from += STATS_AT_ONCE) {
    const sizes = await Promise.all(
      paths.slice(from, from + STATS_AT_ONCE).map((path) => sizeOf(join(workspace, path))),
    );
    bytes += sizes.reduce((sum, size) => sum + size, 0);
  }
  return bytes > MAX_SNAPSHOT_BYTES;
}

// A file may go between the listing and now: it then counts for nothing.
async function sizeOf(path: string): Promise<number> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFile() ? stats.size : 0;
}

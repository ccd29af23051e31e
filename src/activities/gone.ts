import { readFileSync, readdirSync } from 'node:fs';
import { sep } from 'node:path';
import { Context } from '@temporalio/activity';
import { homePaths } from '../home.ts';
import { taskQueue } from '../protocol.ts';
import { RunFileError, hasCode } from '../store/files.ts';

/**
 * Why a file of the run is gone for good as far as this host can tell; undefined for any other error. A file that is
 * missing counts only while the home is there: the rest is a disk that may come back.
 */
export function goneReason(error: unknown, home: string): string | undefined {
  if (error instanceof RunFileError) return error.message;
  if (!isMissingAt(error, homePaths(home).transcripts) || !isHomeThere(home)) return undefined;
  return `a file of the run is gone (${error.path})`;
}

function isMissingAt(error: unknown, folder: string): error is Error & { readonly path: string } {
  if (!hasCode(error, 'ENOENT')) return false;
  const { path } = error as NodeJS.ErrnoException;
  return path !== undefined && path.startsWith(folder + sep);
}

/**
 * Whether this is the home that the worker was started in: by its id, which names the queue. Without any transcript the
 * folder may be the place where a disk is missing.
 */
export function isHomeThere(home: string): boolean {
  const { homeIdFile, transcripts } = homePaths(home);
  try {
    const queue = taskQueue(readFileSync(homeIdFile, 'utf8').trim());
    return queue === Context.current().info.taskQueue && readdirSync(transcripts).length > 0;
  } catch {
    // Whatever is wrong with it: it is not there to be judged by.
    return false;
  }
}

/** Whether the home's folders themselves cannot be reached: nothing can be written, and nobody knows for how long. */
export function isAway(error: unknown, home: string): boolean {
  const codes = ['ENOENT', 'ENOTDIR', 'ESTALE', 'ENODEV', 'EACCES', 'EPERM'];
  return codes.some((code) => hasCode(error, code)) && !isHomeThere(home);
}

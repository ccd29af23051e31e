import { appendFileSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Moments at which a process can be made to kill itself, to show that nothing depends on its living on. `<step>.before`
 * and `<step>.after`: right before the step, and when it is done but nothing has followed from it.
 */
export const CRASH_POINTS = [
  /** A call is taken by an attempt. */
  'claim.before',
  'claim.after',
  /** A file change is made. */
  'effect.before',
  'effect.after',
  /** A shell command runs; it is its supervisor that dies here, not the worker. */
  'command.before',
  'command.after',
  /** A result goes into the effect journal. */
  'keep.before',
  'keep.after',
  /** A line is written to a transcript. */
  'append.before',
  'append.after',
  /** A transcript is flushed. */
  'fsync.before',
  'fsync.after',
  /** An attempt is recorded; the request leaves after it. */
  'attempt.before',
  'attempt.after',
  /** A whole reply is recorded, and what it cost with it. */
  'settle.before',
  'settle.after',
  /** A child is started: its parent's reply is on disk, and its own first activity has begun. */
  'child.before',
  'child.after',
  /** A turn's results go into the transcript. */
  'seal.before',
  'seal.after',
  /** A meta file is replaced. */
  'meta.before',
  'meta.after',
  /** An activity tells the server that it is done. */
  'completion.before',
  'completion.after',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/**
 * ERRAND_CRASH_AT names a folder; without it crash points do nothing. A file `<folder>/<point>` with a number in it arms
 * a point: the process that reaches it as the so-many-th, counted over all processes, kills itself. It first renames the
 * file to `<point>.taken`, so that whoever is started in its place lives. `<point>.reached` gets a byte each time.
 */
const folder = process.env.ERRAND_CRASH_AT || undefined;

/** Dies here if the point is armed. */
export function crashPoint(point: CrashPoint): void {
  if (folder !== undefined && isDue(folder, point)) process.kill(process.pid, 'SIGKILL');
}

/** For a step whose end nobody is told of: reaches the point when it is as good as certain. */
export function crashPointSoon(point: CrashPoint): void {
  if (folder !== undefined) setTimeout(() => crashPoint(point), SOON_MS);
}

const SOON_MS = 40;

/** For a process that gets nothing else of this one's environment. */
export function crashEnvironment(): NodeJS.ProcessEnv {
  return folder === undefined ? {} : { ERRAND_CRASH_AT: folder };
}

function isDue(at: string, point: CrashPoint): boolean {
  const file = join(at, point);
  appendFileSync(`${file}.reached`, '.');
  try {
    if (statSync(`${file}.reached`).size < Number(readFileSync(file, 'utf8'))) return false;
    renameSync(file, `${file}.taken`);
    return true;
  } catch (error) {
    // Not armed, or another process was first.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

import type { ChildProcess, StdioOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { rgPath } from '@vscode/ripgrep';
import { TEMP_GLOB } from './temporary-files.ts';
import { hasCode } from './path-problem.ts';
import { headOf } from '../store/text.ts';
import { counted } from './text.ts';
import { ToolError } from './tool.ts';

const MAX_ITEM_BYTES = 64 * 1024;
const MAX_ERROR_BYTES = 4096;

export interface RipgrepRun {
  readonly args: readonly string[];
  /** Where it runs; its paths are relative to this. */
  readonly cwd: string;
  /** Searched instead of files when `-` is given as path. */
  readonly stdin?: number;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What ends an item of its output: 0 or 10. */
  readonly separator: number;
  /** Takes one item; false: enough. */
  onItem(item: string): boolean;
}

export interface RipgrepEnd {
  readonly exitCode: number | null;
  /** Why it was stopped before its end, if it was. */
  readonly stopped: 'enough' | 'timeout' | undefined;
  /** Its error output, cut. */
  readonly errors: string;
}

/** Flags of every search: own settings only, hidden files too, never git's own files, no links followed. */
export const SEARCH_FLAGS: readonly string[] = [
  ...['--no-config', '--color=never', '--hidden', '--no-require-git', '--no-follow'],
];

/** Globs that leave out what nobody looks for. They come last: the last glob that matches decides. */
export const EXCLUDED: readonly string[] = ['--glob=!.git', `--glob=!${TEMP_GLOB}`];

/**
 * Runs ripgrep and hands out its output an item at a time, in bounded memory. Killed when it takes too long, when the
 * taker has enough, and on abort, which throws the signal's reason.
 */
export async function ripgrep(run: RipgrepRun): Promise<RipgrepEnd> {
  run.signal.throwIfAborted();
  const child = start(run);
  let stopped: RipgrepEnd['stopped'];
  const kill = (): void => void child.kill('SIGKILL');
  const stop = (why: RipgrepEnd['stopped']): void => {
    stopped ??= why;
    kill();
  };
  const timer = setTimeout(stop, run.timeoutMs, 'timeout');
  run.signal.addEventListener('abort', kill);
  try {
    const taken = takeItems(child.stdout, run, () => stop('enough'));
    const [[exitCode], errors] = await Promise.all([closed(child), readErrors(child.stderr), taken]);
    run.signal.throwIfAborted();
    return { exitCode, stopped, errors };
  } catch (error) {
    throw startProblem(error);
  } finally {
    kill();
    clearTimeout(timer);
    run.signal.removeEventListener('abort', kill);
  }
}

interface Searching extends ChildProcess {
  stdout: Readable;
  stderr: Readable;
}

function start(run: RipgrepRun): Searching {
  const stdio: StdioOptions = [run.stdin ?? 'ignore', 'pipe', 'pipe'];
  // Node's types cannot tell from a mixed `stdio` that two of three are pipes.
  return spawn(rgPath, [...run.args], { cwd: run.cwd, env: {}, stdio }) as Searching;
}

/** ripgrep's words without its name. */
export function searchError(errors: string): string {
  return errors.replace(/^rg: /gm, '');
}

/** Whether every error is about a path below the searched folder, so that the search itself was sound. */
export function isPathError(errors: string): boolean {
  return errors.split('\n').every((line) => line.startsWith('rg: ./'));
}

/** What could not be looked at, beside what was found. */
export function pathErrors(errors: string): string {
  const lines = searchError(errors).split('\n');
  const shown = lines.slice(0, 5).join('; ');
  return `${counted(lines.length, 'path')} could not be searched: ${shown}${lines.length > 5 ? '; …' : ''}`;
}

/** Rejects when it could not be started. */
async function closed(child: ChildProcess): Promise<[number | null]> {
  const [exitCode] = (await once(child, 'close')) as [number | null];
  return [exitCode];
}

async function takeItems(output: Readable, run: RipgrepRun, enough: () => void): Promise<void> {
  for await (const item of splitItems(output, run.separator)) {
    if (run.onItem(item)) continue;
    enough();
    return;
  }
}

/** An item longer than the limit is cut: one line can be as long as the file it is in. */
async function* splitItems(output: Readable, separator: number): AsyncGenerator<string> {
  let kept: Buffer = Buffer.alloc(0);
  const add = (piece: Buffer): Buffer => Buffer.concat([kept, piece.subarray(0, MAX_ITEM_BYTES - kept.length)]);
  for await (const chunk of output as AsyncIterable<Buffer>) {
    let at = 0;
    for (let end = chunk.indexOf(separator); end !== -1; end = chunk.indexOf(separator, at)) {
      yield add(chunk.subarray(at, end)).toString('utf8');
      kept = Buffer.alloc(0);
      at = end + 1;
    }
    kept = add(chunk.subarray(at));
  }
  if (kept.length > 0) yield kept.toString('utf8');
}

async function readErrors(output: Readable): Promise<string> {
  let text = '';
  for await (const chunk of output as AsyncIterable<Buffer>) {
    if (text.length < MAX_ERROR_BYTES) text += chunk.toString('utf8');
  }
  return headOf(text.trim(), MAX_ERROR_BYTES);
}

/** A missing program is news for the model, which may have bash; too many processes is the machine's trouble. */
function startProblem(error: unknown): unknown {
  if (!hasCode(error, 'ENOENT', 'EACCES')) return error;
  return new ToolError(
    `The search could not be started: ${rgPath} or the folder is missing. Report this to the user.`,
    {
      cause: error,
    },
  );
}

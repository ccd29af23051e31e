import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

/** A shadow git: the workspace's files, with a repository that is somewhere else. */
export interface ShadowGit {
  /** Folder of the repository. */
  readonly gitDir: string;
  readonly workspace: string;
  /** Environment of the caller; only what finds and localises git is passed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface GitOptions {
  readonly timeoutMs: number;
  /** Added to the environment: another index file. */
  readonly indexFile?: string;
  /** Stops git once this many bytes were written. Default: no limit. */
  readonly maxBytes?: number;
  /** Exit codes that are no error. Default: 0. */
  readonly accept?: readonly number[];
}

/** Output of git, and whether it was stopped at `maxBytes`. */
export interface GitOutput {
  readonly stdout: Buffer;
  readonly cut: boolean;
}

// Nothing of the user or the machine may change what a snapshot holds or run a program of theirs: no hooks, no
// filters, no conversion of line ends, no ignore rules but the workspace's own.
const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.excludesFile=/dev/null',
  'core.attributesFile=/dev/null',
  'core.fsmonitor=false',
  'core.autocrlf=false',
  'core.quotePath=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'advice.addEmbeddedRepo=false',
];

/** Runs git on the shadow repository. Throws with git's own words. */
export async function runGit(git: ShadowGit, args: readonly string[], options: GitOptions): Promise<GitOutput> {
  const child = spawn('git', [...SETTINGS.flatMap((setting) => ['-c', setting]), ...args], {
    cwd: git.workspace,
    env: environment(git, options.indexFile),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: options.timeoutMs,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const stop = () => child.kill('SIGKILL');
  const [output, errors, code] = await Promise.all([
    collect(child.stdout, options.maxBytes ?? Infinity, stop),
    collect(child.stderr, 64 * 1024, () => undefined),
    ended,
  ]);
  if (output.cut || (code !== null && (options.accept ?? [0]).includes(code))) return output;
  const words = errors.stdout.toString('utf8').trim().split('\n').slice(-3).join(' ');
  throw new Error(
    `git ${args[0] ?? ''} ${code === null ? `took longer than ${options.timeoutMs} ms` : `said: ${words}`}`,
  );
}

function environment({ gitDir, workspace, env }: ShadowGit, indexFile?: string): NodeJS.ProcessEnv {
  return {
    PATH: env['PATH'],
    LC_ALL: 'C.UTF-8',
    GIT_DIR: gitDir,
    GIT_WORK_TREE: workspace,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_INDEX_FILE: indexFile ?? join(gitDir, 'index'),
  };
}

async function collect(stream: Readable, maxBytes: number, stop: () => void): Promise<GitOutput> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (size < maxBytes) chunks.push(chunk.subarray(0, maxBytes - size));
    size += chunk.length;
    if (size > maxBytes) stop();
  }
  return { stdout: Buffer.concat(chunks), cut: size > maxBytes };
}

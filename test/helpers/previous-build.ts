import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const PROJECT = resolve(import.meta.dirname, '../..');

/** The commit before this code, built in a folder of its own; or why that cannot be had. */
export type PreviousBuild =
  { readonly commit: string; readonly dist: string; remove(): void } | { readonly problem: string };

/** The last commit when the sources were changed since, else the one before it. */
export function previousCommit(): string | undefined {
  try {
    const changed = git('status', '--porcelain', '--', 'src', 'package-lock.json').trim();
    return git('rev-parse', '--verify', '--short', changed === '' ? 'HEAD~1' : 'HEAD').trim();
  } catch {
    // No git, a source archive, a shallow clone, the first commit: there is nothing to compare with.
    return undefined;
  }
}

/** Builds a commit as the set-up would, with the packages that are installed here. */
export async function buildCommit(commit: string): Promise<PreviousBuild> {
  const folder = mkdtempSync(join(tmpdir(), 'errand-previous-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const dist = join(folder, 'dist');
  try {
    await run(PROJECT, 'git', 'archive', '--output', join(folder, 'source.tar'), commit);
    await run(folder, 'tar', '-xf', 'source.tar');
    symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
    const tsc = 'node_modules/typescript/bin/tsc';
    await run(folder, process.execPath, tsc, '-p', 'tsconfig.build.json', '--outDir', dist);
    await run(folder, process.execPath, 'dist/bundle.js');
    if (!existsSync(join(dist, 'workflow-bundle.js'))) throw new Error('it has no workflow bundle');
    return { commit, dist, remove };
  } catch (error) {
    remove();
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout).slice(0, 500) : '';
    return { problem: `commit ${commit} does not build with the packages installed: ${String(error)} ${output}` };
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: PROJECT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

async function run(folder: string, program: string, ...args: string[]): Promise<void> {
  await promisify(execFile)(program, args, { cwd: folder });
}

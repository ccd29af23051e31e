import { existsSync } from 'node:fs';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { homePaths } from '../home.ts';
import { runGit, type ShadowGit } from './git.ts';
import { scanWorkspace } from './scan.ts';

/** Which run's snapshot, of which folder. */
export interface SnapshotPlace {
  readonly home: string;
  readonly runId: string;
  /** Absolute real path. */
  readonly workspace: string;
  /** The caller's environment: where git is found. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A snapshot was taken, or why there is none: the run goes on without a diff. */
export type Snapshot =
  { readonly taken: true; readonly isNew: boolean } | { readonly taken: false; readonly reason: string };

/** What changed since the start; `cut` when there was more than anyone reads. */
export interface WorkspaceDiff {
  readonly text: string;
  readonly cut: boolean;
}

const START_REF = 'refs/errand/start';
const GIT_TIMEOUT_MS = 120_000;
const MAX_DIFF_BYTES = 8 * 1024 * 1024;

/** Keeps the workspace as it is now in a shadow git under ERRAND_HOME. Never throws for what a workspace can be. */
export async function takeSnapshot(place: SnapshotPlace): Promise<Snapshot> {
  const git = shadowGit(place);
  // The first snapshot of a run is the one from its start.
  if (existsSync(join(git.gitDir, START_REF))) return { taken: true, isNew: false };
  try {
    await openRepository(git);
    const problem = await addAll(git, join(git.gitDir, 'index'));
    if (problem) return await abandon(git, problem);
    const tree = (await runGit(git, ['write-tree'], { timeoutMs: GIT_TIMEOUT_MS })).stdout.toString('utf8').trim();
    await runGit(git, ['update-ref', START_REF, tree], { timeoutMs: GIT_TIMEOUT_MS });
    return { taken: true, isNew: true };
  } catch (error) {
    return await abandon(git, missingGit(error) ?? (error instanceof Error ? error.message : String(error)));
  }
}

/** Removes the snapshot of a run that was not started after all. */
export async function dropSnapshot(home: string, runId: string): Promise<void> {
  await rm(join(homePaths(home).snapshots, runId), { recursive: true, force: true });
}

/** Unified diff between the run's start and now, new files included; undefined without a snapshot. */
export async function diffSince(place: SnapshotPlace): Promise<WorkspaceDiff | undefined> {
  const git = shadowGit(place);
  if (!existsSync(join(git.gitDir, START_REF))) return undefined;
  const indexFile = join(git.gitDir, `index.now.${process.pid}`);
  await copyFile(join(git.gitDir, 'index'), indexFile);
  try {
    const problem = await addAll(git, indexFile);
    if (problem) throw new Error(`No diff of ${place.workspace}: ${problem}.`);
    const command = ['diff', '--cached', '--no-color', '--no-ext-diff', '--no-textconv', START_REF];
    const output = await runGit(git, command, { timeoutMs: GIT_TIMEOUT_MS, indexFile, maxBytes: MAX_DIFF_BYTES });
    return { text: output.stdout.toString('utf8'), cut: output.cut };
  } finally {
    await rm(indexFile, { force: true });
  }
}

function shadowGit({ home, runId, workspace, env }: SnapshotPlace): ShadowGit {
  return { gitDir: join(homePaths(home).snapshots, runId), workspace, env };
}

async function openRepository(git: ShadowGit): Promise<void> {
  await mkdir(git.gitDir, { recursive: true, mode: 0o700 });
  await runGit(git, ['init', '--quiet', '--template=', '--shared=0600'], { timeoutMs: GIT_TIMEOUT_MS });
  await mkdir(join(git.gitDir, 'info'), { recursive: true, mode: 0o700 });
  // Wins over the workspace's .gitattributes: bytes are kept as they are.
  await writeFile(join(git.gitDir, 'info', 'attributes'), '* -text -filter -ident -working-tree-encoding\n', {
    mode: 0o600,
  });
}

// Answers why it cannot be done. Files that cannot be read are left out (exit code 1): the rest is worth having.
async function addAll(git: ShadowGit, indexFile: string): Promise<string | undefined> {
  const excludes = join(git.gitDir, 'info', 'exclude');
  await writeFile(excludes, '', { mode: 0o600 });
  const { nestedRepositories, problem } = await scanWorkspace(git);
  if (problem) return problem;
  const patterns = nestedRepositories.map((path) => `/${path.replace(/[\\*?[\]!# ]/g, '\\$&')}\n`);
  await writeFile(excludes, patterns.join(''));
  const options = { timeoutMs: GIT_TIMEOUT_MS, indexFile, accept: [0, 1] };
  await runGit(git, ['add', '--all', '--ignore-errors', '--', '.'], options);
  return undefined;
}

async function abandon(git: ShadowGit, reason: string): Promise<Snapshot> {
  await rm(git.gitDir, { recursive: true, force: true });
  return { taken: false, reason };
}

function missingGit(error: unknown): string | undefined {
  const { code, path } = error as { code?: string; path?: string };
  return code === 'ENOENT' && path === 'git' ? 'git is not installed' : undefined;
}

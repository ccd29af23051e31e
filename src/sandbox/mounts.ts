import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { join, sep } from 'node:path';

/** One change to what a command sees of the file system. */
export interface Mount {
  readonly path: string;
  readonly kind:
    /** A folder or file of the host, writable. */
    | 'writable'
    /** The host's own, read-only. */
    | 'readonly'
    /** An empty folder in memory, or an empty file. */
    | 'masked'
    /** Another folder of the host in its place. */
    | 'replaced';
  /** For `replaced`: the folder. */
  readonly source?: string;
}

/** Paths in a workspace through which it could arm itself; read-only to every tool. */
export const GUARDED = ['.git/hooks', '.git/config', '.claude', '.errand'];

/** Missing guarded paths that a command could create; looked for when it has ended. */
export function missingGuarded(roots: readonly string[]): readonly string[] {
  const names = ['.claude', '.errand', '.git/hooks', '.git/commondir', '.git/config.worktree'];
  return roots.flatMap((root) =>
    names
      // Without a repository there is nothing to arm: `git init` may make one, hooks and all.
      .filter((name) => !name.startsWith('.git/') || isFolder(join(root, '.git')))
      .map((name) => join(root, name))
      .filter((path) => !isThere(path)),
  );
}

/** Mounts for one writable root: itself, and what is in it that must not be written. */
export function rootMounts(root: string): readonly Mount[] {
  const git = join(root, '.git');
  // Real paths: behind a link it is the target that must not change.
  const guarded = GUARDED.map((name) => join(root, name)).filter((path) => existsSync(path));
  return [
    { path: root, kind: 'writable' },
    // A mount point cannot be renamed: without it `.git` could be moved away and built anew with other hooks.
    ...(isFolder(git) ? [{ path: git, kind: 'writable' } as const] : []),
    // In a linked work tree `.git` is a file that says where the repository is.
    ...(isThere(git) && !isFolder(git) ? [{ path: git, kind: 'readonly' } as const] : []),
    ...guarded.map((path) => ({ path: realpathSync(path), kind: 'readonly' }) as const),
  ];
}

/** Masks for what exists, on real paths: a link to a secret is no way around. */
export function maskMounts(paths: readonly string[]): readonly Mount[] {
  const real = paths.filter((path) => existsSync(path)).map((path) => realpathSync(path));
  return [...new Set(real)].map((path) => ({ path, kind: 'masked' }));
}

/**
 * Bubblewrap's arguments, outer paths before inner ones, so that a workspace inside a masked folder stays visible and a
 * secret inside a workspace does not.
 */
export function mountArguments(mounts: readonly Mount[], emptyFile: string): readonly string[] {
  const ordered = mounts.toSorted((a, b) => depth(a.path) - depth(b.path));
  return ordered.filter((mount) => isVisible(mount, ordered)).flatMap((mount) => toArguments(mount, emptyFile));
}

// What lies in a folder that the sandbox replaces is out of sight already; a mask would only make it appear.
function isVisible(mount: Mount, ordered: readonly Mount[]): boolean {
  if (mount.kind !== 'masked') return true;
  const cover = ordered.findLast((other) => other !== mount && mount.path.startsWith(other.path + sep));
  return cover === undefined || cover.kind === 'writable' || cover.kind === 'readonly';
}

function toArguments({ path, kind, source }: Mount, emptyFile: string): readonly string[] {
  if (kind === 'writable') return ['--bind', path, path];
  if (kind === 'readonly') return ['--ro-bind', path, path];
  if (kind === 'replaced') return ['--bind', source ?? path, path];
  return isFolder(path) ? ['--tmpfs', path] : ['--ro-bind', emptyFile, path];
}

function depth(path: string): number {
  return path.split(sep).filter(Boolean).length;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

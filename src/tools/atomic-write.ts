import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { open, rename } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { hasCode, pathProblem } from './path-problem.ts';
import type { OpenedParent } from './paths.ts';
import { openFile, openParent, realPathInside } from './paths.ts';
import { requireWritable } from './protected-paths.ts';
import { removeIfThere, removeOrphans, tempName } from './temporary-files.ts';
import type { FileChange } from './tool.ts';
import { ToolError } from './tool.ts';
import type { PathScope } from './walk.ts';
import { entryPath, kindOf } from './walk.ts';

const CHUNK_BYTES = 256 * 1024;

/** The file is not what the change was computed from. Nothing was written. */
export class StaleFileError extends Error {
  override readonly name = 'StaleFileError';
  readonly path: string;
  readonly expectedSha256: string | null;
  readonly actualSha256: string | null;

  constructor(path: string, expectedSha256: string | null, actualSha256: string | null) {
    super(`${path} has changed: expected ${expectedSha256 ?? 'no file'}, found ${actualSha256 ?? 'no file'}`);
    this.path = path;
    this.expectedSha256 = expectedSha256;
    this.actualSha256 = actualSha256;
  }
}

/** Another attempt at the same call has taken the new content away before it was in place. Nothing was changed. */
export class ChangeTakenError extends Error {
  override readonly name = 'ChangeTakenError';
}

export interface ReplaceOptions {
  /** Names the call, so that an attempt that takes it over can take the change away from this one. */
  readonly call?: string;
  /** Asked once the new content is on disk, as late as can be: writing takes long, and the right may be lost meanwhile. */
  readonly confirm?: () => Promise<void>;
}

/**
 * Puts the new content in place at once: a reader, a crash and a full disk see the old file or the new one, nothing in
 * between. Missing folders are made. Mode is kept, and the owner when errand runs as root; extended attributes are not.
 * Of a file with several hard links only this name gets the new content, as with every editor that saves by rename.
 *
 * Throws StaleFileError when the content is not `preSha256`, ToolError when the file may not be written, and Node's own
 * error (ENOSPC, EIO, …) for trouble of the machine. Between the check and the rename another process can still slip in
 * a change, for some microseconds; within this process nobody can, and no other attempt at the same call.
 */
export async function replaceFile(
  change: Pick<FileChange, 'path' | 'content' | 'mode' | 'preSha256'>,
  roots: readonly string[],
  options: ReplaceOptions = {},
): Promise<void> {
  await inTurn(change.path, async () => {
    const scope: PathScope = { workspace: '/', roots };
    const target = await openParent(change.path, scope, { createFolders: change.preSha256 === null });
    try {
      // The path was real when the change was computed; a link in it now leads to another file.
      if (target.realPath !== change.path) throw new StaleFileError(change.path, change.preSha256, null);
      requireWritable(target, roots);
      requireOwnerWrite(change.path, target.stat);
      await removeOrphans(target.folder, folderOf(target));
      await writeAndRename(change, target, options);
    } finally {
      await target.folder.close();
    }
  });
}

/** sha256 of a file's content in bounded memory; null when there is no such file. */
export async function hashFile(path: string, roots: readonly string[]): Promise<string | null> {
  const scope: PathScope = { workspace: '/', roots };
  const { stat } = await realPathInside(path, scope);
  if (stat === undefined) return null;
  const file = await openFile(path, scope);
  try {
    return await hashHandle(file.handle);
  } finally {
    await file.handle.close();
  }
}

/** Throws ToolError for what cannot be replaced: no regular file, or one its owner protected from writing. */
export function requireOwnerWrite(path: string, stat: Stats | undefined): void {
  if (stat === undefined) return;
  if (!stat.isFile()) throw new ToolError(`'${path}' is not a regular file but ${kindOf(stat)}.`);
  if ((stat.mode & 0o200) !== 0) return;
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
  throw new ToolError(`'${path}' is read-only (mode ${mode}). If it must change, make it writable first (chmod u+w).`);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

type Change = Parameters<typeof replaceFile>[0];

async function writeAndRename(
  change: Change,
  target: OpenedParent,
  { call = '', confirm }: ReplaceOptions,
): Promise<void> {
  const entry = (name: string): string => entryPath(target.folder, folderOf(target), name);
  const temp = entry(tempName(call));
  const handle = await createTemp(temp, change, target.stat);
  try {
    await fillTemp(handle, change, target.stat);
    await confirm?.();
    await requireUnchanged(entry(target.name), change);
    await moveInPlace(temp, entry(target.name), change.path);
  } catch (error) {
    await removeIfThere(temp);
    throw error;
  }
  await target.folder.sync();
}

async function moveInPlace(temp: string, entry: string, path: string): Promise<void> {
  try {
    await rename(temp, entry);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw new ChangeTakenError(`the new content of ${path} was taken away`);
    throw error;
  }
}

function folderOf({ realPath, name }: OpenedParent): string {
  return realPath.slice(0, -name.length - 1);
}

/** A new file gets its mode less the umask; the copy of an existing one is closed to others until it has its mode. */
async function createTemp(temp: string, change: Change, current: Stats | undefined): Promise<FileHandle> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    return await open(temp, flags, current === undefined ? change.mode : 0o600);
  } catch (error) {
    throw pathProblem(change.path, error);
  }
}

async function fillTemp(handle: FileHandle, change: Change, current: Stats | undefined): Promise<void> {
  try {
    await handle.writeFile(change.content);
    if (current !== undefined) await keepOwnership(handle, change.mode, current);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Owner first: changing it clears mode bits. */
async function keepOwnership(handle: FileHandle, mode: number, current: Stats): Promise<void> {
  if (process.getuid?.() === 0) await handle.chown(current.uid, current.gid);
  await handle.chmod(mode);
}

async function requireUnchanged(entry: string, change: Change): Promise<void> {
  const actual = await hashEntry(entry);
  if (actual !== change.preSha256) throw new StaleFileError(change.path, change.preSha256, actual);
}

async function hashEntry(entry: string): Promise<string | null> {
  try {
    const handle = await open(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return (await handle.stat()).isFile() ? await hashHandle(handle) : 'not a regular file';
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    if (hasCode(error, 'ELOOP', 'ENXIO')) return 'not a regular file';
    throw error;
  }
}

async function hashHandle(handle: FileHandle): Promise<string> {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES);
    if (bytesRead === 0) return hash.digest('hex');
    hash.update(chunk.subarray(0, bytesRead));
  }
}

const writing = new Map<string, Promise<void>>();

/** One write of a path at a time: of two siblings that computed from the same content, the second is stale. */
async function inTurn(path: string, write: () => Promise<void>): Promise<void> {
  const before = writing.get(path) ?? Promise.resolve();
  const mine = before.then(write, write);
  writing.set(path, mine);
  try {
    await mine;
  } finally {
    if (writing.get(path) === mine) writing.delete(path);
  }
}

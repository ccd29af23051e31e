import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { hasCode, pathProblem } from './path-problem.ts';
import type { ToolContext } from './tool.ts';
import { ToolError } from './tool.ts';
import type { PathScope, Place } from './walk.ts';
import { entryPath, FOLDER_FLAGS, kindOf, locate } from './walk.ts';

/** A path with every link resolved. `aliases` are the names it had before: a rule may speak of a link. */
export interface ResolvedPath {
  readonly realPath: string;
  readonly aliases: readonly string[];
  /** What is there now, never a link; undefined: nothing. */
  readonly stat: Stats | undefined;
}

export interface OpenedFile extends ResolvedPath {
  /** Open for reading; the caller closes it. */
  readonly handle: FileHandle;
  readonly stat: Stats;
}

export interface OpenedFolder extends ResolvedPath {
  /** The caller closes it. */
  readonly folder: FileHandle;
}

/** The folder of a file that exists or shall exist. The caller closes `folder`. */
export interface OpenedParent extends ResolvedPath {
  readonly folder: FileHandle;
  readonly name: string;
}

/** O_NONBLOCK: opening a FIFO without a writer would hold one of the process's few file threads for ever. */
const FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** How often a file is opened again because its name changed in between. */
const MAX_RACES = 20;

/** The part of a call's context that decides about paths. */
export function pathScope(context: ToolContext): PathScope {
  return { workspace: context.workspace, roots: context.policy.roots };
}

/** Like `pathScope`, for tools that only look. */
export function readScope(context: ToolContext): PathScope {
  return { workspace: context.workspace, roots: [...context.policy.roots, ...context.readable] };
}

/** Real path of `path`, which need not exist; throws ToolError when it is outside the roots. */
export async function realPathInside(path: string, scope: PathScope): Promise<ResolvedPath> {
  const place = await locate(path, scope);
  await place.folder.close();
  return resolvedPlace(place);
}

/** Opens a regular file for reading. Nothing else is ever opened: a FIFO, socket or device is refused at once. */
export async function openFile(path: string, scope: PathScope): Promise<OpenedFile> {
  for (let races = 0; races < MAX_RACES; races++) {
    const opened = await tryOpenFile(path, scope);
    if (opened !== 'changed') return opened;
  }
  throw new ToolError(`'${path}' keeps changing while it is being opened. Try again when nothing else works on it.`);
}

/** Opens a folder, for search. */
export async function openFolder(path: string, scope: PathScope): Promise<OpenedFolder> {
  const place = await locate(path, scope);
  if (place.missing.length === 0) return { ...resolvedPlace(place), folder: place.folder };
  await place.folder.close();
  if (place.leaf === undefined) throw notFound(path, place);
  throw new ToolError(`'${path}' is ${kindOf(place.leaf)}, not a folder.`);
}

/** Opens the folder that holds, or shall hold, the file `path`; `createFolders` makes missing ones. */
export async function openParent(
  path: string,
  scope: PathScope,
  options: { readonly createFolders?: boolean } = {},
): Promise<OpenedParent> {
  const place = await locate(path, scope);
  try {
    return await parentOf(path, place, options.createFolders ?? false);
  } catch (error) {
    await place.folder.close();
    throw error;
  }
}

/** How a path is shown to the model: relative when it is in the workspace, so that it can be used as is. */
export function shownPath(realPath: string, workspace: string): string {
  const inside = relative(workspace, realPath);
  if (inside === '') return '.';
  return inside.startsWith('../') || inside === '..' ? realPath : inside;
}

async function tryOpenFile(path: string, scope: PathScope): Promise<OpenedFile | 'changed'> {
  const place = await locate(path, scope);
  try {
    requireRegular(path, place);
    const handle = await open(entryPath(place.folder, place.folderPath, place.missing[0] ?? ''), FILE_FLAGS);
    return await checkOpened(path, handle, place);
  } catch (error) {
    if (hasCode(error, 'ELOOP', 'ENOENT', 'ENXIO')) return 'changed';
    throw pathProblem(path, error);
  } finally {
    await place.folder.close();
  }
}

async function checkOpened(path: string, handle: FileHandle, place: Place): Promise<OpenedFile | 'changed'> {
  const stat = await handle.stat();
  if (stat.isFile()) return { ...resolvedPlace(place), handle, stat };
  await handle.close();
  return 'changed';
}

function requireRegular(path: string, place: Place): void {
  if (place.missing.length === 0) {
    throw new ToolError(`'${path}' is not a regular file but a folder. Use glob to list what is in it.`);
  }
  if (place.leaf === undefined) throw notFound(path, place);
  if (!place.leaf.isFile()) throw new ToolError(`'${path}' is not a regular file but ${kindOf(place.leaf)}.`);
}

async function parentOf(path: string, place: Place, createFolders: boolean): Promise<OpenedParent> {
  const name = place.missing.at(-1);
  if (name === undefined) throw new ToolError(`'${path}' is not a regular file but a folder.`);
  if (place.missing.length === 1) return { ...resolvedPlace(place), folder: place.folder, name };
  if (!createFolders) throw notFound(path, place);
  const folder = await makeFolders(place);
  return { ...resolvedPlace(place), folder, name };
}

/** Opens each new folder as it is made, so that nothing put in its place is followed. */
async function makeFolders(place: Place): Promise<FileHandle> {
  let { folder, folderPath } = place;
  try {
    for (const name of place.missing.slice(0, -1)) {
      const next = await makeFolder(folder, folderPath, name);
      await folder.close();
      folder = next;
      folderPath = join(folderPath, name);
    }
    return folder;
  } catch (error) {
    await folder.close();
    throw error;
  }
}

async function makeFolder(parent: FileHandle, parentPath: string, name: string): Promise<FileHandle> {
  const entry = entryPath(parent, parentPath, name);
  try {
    await mkdir(entry);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw pathProblem(join(parentPath, name), error);
  }
  await parent.sync();
  return await open(entry, FOLDER_FLAGS);
}

function resolvedPlace(place: Place): ResolvedPath {
  return {
    realPath: join(place.folderPath, ...place.missing),
    aliases: place.aliases,
    stat: place.missing.length === 0 ? place.folderStat : place.leaf,
  };
}

function notFound(path: string, place: Place): ToolError {
  const first = place.missing[0] ?? '';
  const where = place.missing.length > 1 ? ` (there is no '${first}' in ${place.folderPath})` : '';
  return new ToolError(`'${path}' does not exist${where}. Use glob to find it.`);
}

import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { lstat, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { hasCode, pathProblem } from './path-problem.ts';
import { ToolError } from './tool.ts';

/** Where a tool may go. */
export interface PathScope {
  /** Relative paths start here. */
  readonly workspace: string;
  /** Absolute real paths of the folders that may be touched. */
  readonly roots: readonly string[];
}

/** Where a walk ended: at `folder`, or above entries that are no folders or do not exist. */
export interface Place {
  readonly folder: FileHandle;
  readonly folderPath: string;
  /** Names below `folder`. One name with a `leaf`: a thing that exists and is no folder. */
  readonly missing: readonly string[];
  readonly leaf?: Stats;
  readonly folderStat?: Stats;
  readonly aliases: readonly string[];
}

/** Opens a folder by its entry and never through a link. */
export const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** As many as the kernel follows. */
const MAX_LINKS = 40;

/** How often an entry is looked at again because it changed in between. */
const MAX_RACES = 20;

/** Walks to `path`, following links only within the roots; the caller closes the folder. */
export async function locate(path: string, scope: PathScope): Promise<Place> {
  if (path.includes('\0')) throw new ToolError(`The path ${JSON.stringify(path)} contains a NUL character.`);
  const aliases: string[] = [];
  let target = isAbsolute(path) ? path : `${scope.workspace}/${path}`;
  while (aliases.length <= MAX_LINKS) {
    target = await intoRoots(path, target, scope);
    const step = await walk(path, target, scope.roots);
    if ('folder' in step) return { ...step, aliases };
    if (step.alias !== undefined) aliases.push(step.alias);
    target = step.target;
  }
  throw new ToolError(`'${path}' goes through more than ${MAX_LINKS} links.`);
}

/**
 * Name of an entry of an open folder, bound to the folder itself and not to its path: renaming or replacing a parent
 * cannot lead it elsewhere. Without /proc (macOS) it is the plain path, and that protection is lost: a parent that is
 * swapped for a link between two steps of a walk may then be followed.
 */
export function entryPath(folder: FileHandle, folderPath: string, name: string): string {
  return process.platform === 'linux' ? `/proc/${process.pid}/fd/${folder.fd}/${name}` : join(folderPath, name);
}

/** Name of the open folder itself, for what takes a path and no descriptor; see `entryPath`. */
export function folderEntry(folder: FileHandle, folderPath: string): string {
  return entryPath(folder, folderPath, '.');
}

/** Whether `path` is `folder` or below it; both absolute and normal. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || folder === '/' || path.startsWith(`${folder}/`);
}

/** Which root a path is in: the outermost, since only above it nothing can be swapped by an agent. */
export function rootOf(path: string, roots: readonly string[]): string | undefined {
  return roots.filter((root) => isWithin(path, root)).sort((a, b) => a.length - b.length)[0];
}

/** `a FIFO`, `a folder`: for messages. */
export function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a FIFO';
  if (stat.isSocket()) return 'a socket';
  if (stat.isCharacterDevice() || stat.isBlockDevice()) return 'a device';
  return stat.isFile() ? 'a file' : 'something else';
}

/** The walk met a link or `..` and has to start again elsewhere. */
interface Detour {
  readonly target: string;
  /** Full name under which the link was used; undefined for `..`. */
  readonly alias?: string;
}

/** A target whose text is outside every root may still name a folder inside one, through a link above the roots. */
async function intoRoots(path: string, target: string, scope: PathScope): Promise<string> {
  const clean = target.replace(/\/+/g, '/').replace(/(.)\/$/, '$1');
  if (rootOf(clean, scope.roots) !== undefined) return clean;
  const real = await realAncestor(clean);
  if (rootOf(real, scope.roots) !== undefined) return real;
  const leads = target === path ? '' : ` leads to '${real}', which`;
  throw new ToolError(
    `'${path}'${leads} is outside the folders you may use. Paths must be inside: ${scope.roots.join(', ')}`,
  );
}

async function realAncestor(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG')) throw error;
    return join(path === '/' ? '/' : await realAncestor(dirname(path)), basename(path));
  }
}

/** One walk from a root down, a folder at a time, following nothing. */
async function walk(path: string, target: string, roots: readonly string[]): Promise<Omit<Place, 'aliases'> | Detour> {
  const root = rootOf(target, roots);
  if (root === undefined) throw new Error(`walk needs a path inside a root, got ${target}`);
  const names = target
    .slice(root.length)
    .split('/')
    .filter((name) => name !== '' && name !== '.');
  let folder = await open(root, FOLDER_FLAGS);
  let folderPath = root;
  try {
    for (const [index, name] of names.entries()) {
      const rest = names.slice(index + 1);
      if (name === '..') return await leave(folder, { target: [dirname(folderPath), ...rest].join('/') });
      const next = await enter({ folder, folderPath, name, rest });
      if ('target' in next) return await leave(folder, next);
      if ('missing' in next) return { folder, folderPath, ...next };
      await folder.close();
      folder = next.entered;
      folderPath = join(folderPath, name);
    }
    return { folder, folderPath, missing: [], folderStat: await folder.stat() };
  } catch (error) {
    await folder.close();
    throw pathProblem(path, error);
  }
}

async function leave(folder: FileHandle, detour: Detour): Promise<Detour> {
  await folder.close();
  return detour;
}

interface Step {
  readonly folder: FileHandle;
  readonly folderPath: string;
  readonly name: string;
  readonly rest: readonly string[];
}

type Entered = { readonly entered: FileHandle } | Pick<Place, 'missing' | 'leaf'> | Detour;

async function enter(step: Step): Promise<Entered> {
  const entry = entryPath(step.folder, step.folderPath, step.name);
  for (let races = 0; races < MAX_RACES; races++) {
    const stat = await lstatIfThere(entry);
    if (stat === undefined) return { missing: withoutDots(step) };
    if (stat.isSymbolicLink()) {
      const detour = await followLink(entry, step);
      if (detour !== undefined) return detour;
      continue;
    }
    if (!stat.isDirectory()) return leafOf(step, stat);
    const entered = await openFolderEntry(entry);
    if (entered !== undefined) return { entered };
  }
  throw new ToolError(`'${join(step.folderPath, step.name)}' keeps changing while it is being opened.`);
}

/** Undefined: replaced by something else since it was looked at. */
async function openFolderEntry(entry: string): Promise<FileHandle | undefined> {
  try {
    return await open(entry, FOLDER_FLAGS);
  } catch (error) {
    if (hasCode(error, 'ELOOP', 'ENOTDIR', 'ENOENT')) return undefined;
    throw error;
  }
}

/** Plain concatenation: a `..` in the rest is taken from where the link leads, as the kernel does. */
async function followLink(entry: string, step: Step): Promise<Detour | undefined> {
  const alias = join(step.folderPath, step.name, ...step.rest);
  try {
    const text = await readlink(entry);
    const from = isAbsolute(text) ? text : `${step.folderPath}/${text}`;
    return { target: [from, ...step.rest].join('/'), alias };
  } catch (error) {
    if (hasCode(error, 'EINVAL', 'ENOENT')) return undefined;
    throw error;
  }
}

function leafOf(step: Step, leaf: Stats): Pick<Place, 'missing' | 'leaf'> {
  if (step.rest.length === 0) return { missing: [step.name], leaf };
  throw new ToolError(`'${join(step.folderPath, step.name)}' is ${kindOf(leaf)}, not a folder.`);
}

function withoutDots(step: Step): readonly string[] {
  if (!step.rest.includes('..')) return [step.name, ...step.rest];
  throw new ToolError(`'${join(step.folderPath, step.name)}' does not exist, so '..' below it leads nowhere.`);
}

async function lstatIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

import { randomInt } from 'node:crypto';
import {
  accessSync,
  constants,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

/** Where everything below ERRAND_HOME is. */
export interface HomePaths {
  readonly home: string;
  readonly homeIdFile: string;
  /** Number of the layout; not there: 1. Only a version that lays a home out in another way writes it. */
  readonly layoutFile: string;
  readonly configFile: string;
  readonly transcripts: string;
  readonly journal: string;
  readonly snapshots: string;
  readonly server: string;
}

/** Names the folders and files of a home; creates nothing. */
export function homePaths(home: string): HomePaths {
  return {
    home,
    homeIdFile: join(home, 'home-id'),
    layoutFile: join(home, 'layout'),
    configFile: join(home, 'config.yaml'),
    transcripts: join(home, 'transcripts'),
    journal: join(home, 'journal'),
    snapshots: join(home, 'snapshots'),
    server: join(home, 'server'),
  };
}

/** Which folder a home is. A copy is another folder; a moved one is the same at another path, a symlink changes nothing. */
export interface HomePlace {
  readonly device: string;
  readonly inode: string;
  /** Its real path. */
  readonly path: string;
}

/** Where a home is now; undefined if it is not there. */
export function placeOf(home: string): HomePlace | undefined {
  try {
    const path = realpathSync(home);
    const { dev, ino } = statSync(path, { bigint: true });
    return { device: String(dev), inode: String(ino), path };
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Whether both are one folder, wherever it is. */
export function isSameFolder(one: HomePlace | undefined, other: HomePlace | undefined): boolean {
  return one?.inode === other?.inode && one?.device === other?.device;
}

/** Reads a place out of parsed JSON; undefined if it is none, as in the files of an earlier errand. */
export function toHomePlace(value: unknown): HomePlace | undefined {
  const { device, inode, path } = (value ?? {}) as Record<string, unknown>;
  const isComplete = typeof device === 'string' && typeof inode === 'string' && typeof path === 'string';
  return isComplete ? { device, inode, path } : undefined;
}

/** How this version lays a home out. */
const LAYOUT = 1;

/** Why a folder cannot be used as a home at all; undefined if it can, or is not there yet. Writes nothing. */
export function homeProblem(home: string): string | undefined {
  const place = existingPart(home);
  if (!statSync(place).isDirectory()) return `${place} is not a folder`;
  const layout = readIfThere(homePaths(home).layoutFile)?.trim();
  if (layout === undefined || layout === String(LAYOUT)) return undefined;
  const { layoutFile } = homePaths(home);
  if (!/^\d+$/.test(layout))
    return `${layoutFile} does not hold the number of a layout: ${JSON.stringify(layout.slice(0, 40))}`;
  return `${home} was laid out by a newer errand (layout ${layout}, this one knows ${LAYOUT}); nothing was written`;
}

/** Why nothing can be kept in a home; undefined if it can, also where the folder has to be made first. */
export function homeWriteProblem(home: string): string | undefined {
  const place = existingPart(home);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    return `${place} cannot be written: ${NO_WRITE[code] ?? message}`;
  }
}

const NO_WRITE: Readonly<Record<string, string>> = {
  EROFS: 'its file system is read-only',
  EACCES: 'you have no permission',
};

function existingPart(path: string): string {
  try {
    statSync(path);
    return path;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['ENOENT', 'ENOTDIR'].includes(code) || dirname(path) === path) throw error;
    return existingPart(dirname(path));
  }
}

/** The home's id, minted at first use; every process that asks gets the same one. Names the task queue. */
export function homeId(home: string): string {
  const known = knownHomeId(home);
  if (known !== undefined) return known;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return mint(homePaths(home).homeIdFile);
}

/** The home's id, for who only looks: undefined where nothing has ever run. */
export function knownHomeId(home: string): string | undefined {
  return readHomeId(homePaths(home).homeIdFile);
}

const ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
const ID_LENGTH = 8;

function readHomeId(file: string): string | undefined {
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  const id = text.trim();
  if (new RegExp(`^[a-z0-9]{${ID_LENGTH}}$`).test(id)) return id;
  throw new Error(
    `${file} does not hold a home id: ${JSON.stringify(id.slice(0, 40))} (expected ${ID_LENGTH} of a-z and 0-9). ` +
      'Put the old id back: runs in progress wait on the queue that is named after it.',
  );
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

// The id becomes visible whole, by a link that only one process can make; the others read the winner's.
function mint(file: string): string {
  const id = Array.from({ length: ID_LENGTH }, () => ID_ALPHABET[randomInt(ID_ALPHABET.length)]).join('');
  const draft = `${file}.${process.pid}.${id}`;
  writeFileSync(draft, `${id}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(draft, file);
    return id;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readHomeId(file) ?? mint(file);
  } finally {
    rmSync(draft, { force: true });
  }
}

import { randomInt } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where everything below ERRAND_HOME is. */
export interface HomePaths {
  readonly home: string;
  readonly homeIdFile: string;
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
    configFile: join(home, 'config.yaml'),
    transcripts: join(home, 'transcripts'),
    journal: join(home, 'journal'),
    snapshots: join(home, 'snapshots'),
    server: join(home, 'server'),
  };
}

/** The home's id, minted at first use; every process that asks gets the same one. Names the task queue. */
export function homeId(home: string): string {
  const file = homePaths(home).homeIdFile;
  const known = readHomeId(file);
  if (known !== undefined) return known;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return mint(file);
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

import { createHash } from 'node:crypto';
import { RunFileError, hasCode, readSmallFile, writeAtomic } from './files.ts';
import { objectFile } from './layout.ts';

/** Largest object that is read: far above any policy, prompt or schema. */
export const MAX_OBJECT_BYTES = 64 * 1024 * 1024;

/** Stores data in the run's folder under its sha256, once; answers the hash. On disk when it returns. */
export async function putObject(home: string, stem: string, data: string | Buffer): Promise<string> {
  const hash = sha256(data);
  const file = objectFile(home, stem, hash);
  if (!(await isStored(file, hash))) await writeAtomic(file, data);
  return hash;
}

/** The data behind a hash; never data that does not match it. */
export async function getObject(home: string, stem: string, hash: string): Promise<Buffer> {
  const file = objectFile(home, stem, hash);
  const data = await readSmallFile(file, MAX_OBJECT_BYTES);
  const found = sha256(data);
  if (found === hash) return data;
  throw new RunFileError(
    `${file} was changed: its sha256 is ${found}, expected ${hash}. Restore the file from a copy.`,
  );
}

/** Looks at the content, not at the name alone, so that a damaged object is healed by the next put. */
async function isStored(file: string, hash: string): Promise<boolean> {
  try {
    return sha256(await readSmallFile(file, MAX_OBJECT_BYTES)) === hash;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Creates a file whole and flushed, unless it is there already: of many writers exactly one gets true. A link, unlike a
 * rename, never replaces; unlike an O_EXCL write, a crash never leaves half a file under the final name.
 */
export async function createOnce(path: string, text: string): Promise<boolean> {
  const isNew = await placeOnce(path, text);
  if (isNew) await flushFolder(dirname(path));
  return isNew;
}

/** Like `createOnce`, but a power cut may forget the file as a whole: for what can be made again. */
export async function placeOnce(path: string, text: string): Promise<boolean> {
  const draft = await writeDraft(path, text);
  try {
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return true;
}

/** Replaces a file: readers see the old or the new text, never a mix. */
export async function replaceWhole(path: string, text: string): Promise<void> {
  const draft = await writeDraft(path, text);
  try {
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await flushFolder(dirname(path));
}

/** Text of a file, or undefined when there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Makes a folder and its parents, private, and sees to it that they are still there after a power cut. */
export async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let folder = path; folder.length >= first.length; folder = dirname(folder)) await flushFolder(dirname(folder));
}

/** Flushes a folder's list of names. */
export async function flushFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A stored JSON object; a file that is damaged or of a newer version stops the caller instead of being replaced. */
export async function readStored<Value extends { readonly v: number }>(path: string): Promise<Value | undefined> {
  const text = await readIfThere(path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'EISDIR') throw cause;
    throw new StoredFileError(`${path} is a folder. Nothing was run; move it away to go on.`, { file: path, cause });
  });
  return text === undefined ? undefined : parseStored<Value>(path, text);
}

/** Version of every JSON file of the effect journal and of the job folders. */
export const STORED_VERSION = 1;

/** A stored file that cannot be used: damaged, or of a newer version. Nothing was run or overwritten; no retry helps. */
export class StoredFileError extends Error {
  override readonly name = 'StoredFileError';
  readonly file: string;
  /** Whole, but only a newer version knows what it means. */
  readonly isNewer: boolean;

  constructor(message: string, { file, isNewer = false, cause }: { file: string; isNewer?: boolean; cause?: unknown }) {
    super(message, { cause });
    this.file = file;
    this.isNewer = isNewer;
  }
}

function parseStored<Value extends { readonly v: number }>(path: string, text: string): Value {
  const value = parseJson(path, text);
  if (typeof value !== 'object' || value === null || !('v' in value) || typeof value.v !== 'number') {
    throw new StoredFileError(
      `${path} is not a file of errand: it has no version. Nothing was run; move it away to go on.`,
      { file: path },
    );
  }
  if (value.v > STORED_VERSION) {
    throw new StoredFileError(
      `${path} was written by a newer errand (version ${value.v}, this one knows ${STORED_VERSION}). ` +
        'Nothing was run or overwritten; go on with that version.',
      { file: path, isNewer: true },
    );
  }
  // Written by this module's callers only; the version says which shape.
  return value as Value;
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new StoredFileError(
      `${path} is damaged. Nothing was run or overwritten; restore it, or move it away to go on.`,
      { file: path, cause },
    );
  }
}

async function writeDraft(path: string, text: string): Promise<string> {
  const draft = join(dirname(path), `.draft-${randomUUID()}`);
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  return draft;
}

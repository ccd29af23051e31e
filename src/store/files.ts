import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { chmod, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** A file that was just opened, and what it was then. */
export interface OpenedFile {
  readonly handle: FileHandle;
  readonly stats: Stats;
}

/** A file that a run needs is not what it was: emptied, damaged, or another's. What is there now is left alone. */
export class RunFileError extends Error {
  override readonly name: string = 'RunFileError';
}

/** Something else than a regular file stands where one of ours should be. */
export class NotAFile extends RunFileError {
  override readonly name: string = 'NotAFile';
}

/** What cannot even be opened as a file. */
const NO_FILE: Readonly<Record<string, string>> = {
  ELOOP: 'a symbolic link, which is not followed',
  EISDIR: 'a folder, not a regular file',
  ENXIO: 'a socket or pipe, not a regular file',
};

/** Opens a regular file and nothing else: a link, FIFO, folder or device is an error, never a wait. */
export async function openRegular(file: string, flags: number = O_RDONLY): Promise<OpenedFile> {
  const handle = await open(file, flags | O_NOFOLLOW | O_NONBLOCK, FILE_MODE).catch((cause: unknown) => {
    const code = Object.keys(NO_FILE).find((one) => hasCode(cause, one));
    throw code === undefined ? cause : new NotAFile(`${file} is ${NO_FILE[code]}`, { cause });
  });
  try {
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, stats };
    throw new NotAFile(`${file} is ${stats.isDirectory() ? 'a folder, ' : ''}not a regular file`);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Makes sure that a file is there, private and with its name on disk. True when this call made it. */
export async function createFile(file: string): Promise<boolean> {
  try {
    const handle = await openNew(file);
    await handle.close();
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
  await syncFolder(dirname(file));
  return true;
}

/**
 * One write(2) of the whole of `data` to a handle opened with O_APPEND, so that lines of several processes do not mix.
 * False when the kernel took only a part (disk full, file size limit): the rest must not follow as a second write.
 */
export async function appendLine(handle: FileHandle, data: Buffer): Promise<boolean> {
  const { bytesWritten } = await handle.write(data);
  return bytesWritten === data.length;
}

/** Replaces a file in one step: readers see the old or the new content, also after a power cut. Makes its folder. */
export async function writeAtomic(file: string, data: string | Buffer): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomBytes(6).toString('hex')}.tmp`);
  const handle = await openNew(temporary);
  try {
    await handle.writeFile(data);
    await handle.sync();
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  await syncFolder(dirname(file));
}

/** Whole content of a file that must be small; a larger one is an error, not a full memory. */
export async function readSmallFile(file: string, maxBytes: number): Promise<Buffer> {
  const { handle, stats } = await openRegular(file);
  try {
    const { size } = stats;
    if (size > maxBytes) throw new Error(`${file} has ${size} bytes; at most ${maxBytes} were expected`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Makes a folder and its missing parents, private whatever the umask, their names on disk. */
export async function ensureFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: FOLDER_MODE });
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return assertFolder(folder);
    if (!hasCode(error, 'ENOENT')) throw error;
    await ensureFolder(dirname(folder));
    return ensureFolder(folder);
  }
  await chmod(folder, FOLDER_MODE);
  await syncFolder(dirname(folder));
}

/** True for a Node error with this `code`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Opens a file that is not there yet; the mode is set again because a umask may have taken bits from it. */
async function openNew(file: string): Promise<FileHandle> {
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  const handle = await open(file, flags, FILE_MODE).catch(async (error: unknown) => {
    if (!hasCode(error, 'ENOENT')) throw error;
    await ensureFolder(dirname(file));
    return open(file, flags, FILE_MODE);
  });
  await handle.chmod(FILE_MODE);
  return handle;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function assertFolder(folder: string): Promise<void> {
  if ((await stat(folder)).isDirectory()) return;
  throw new Error(`${folder} is in the way: a folder is needed there. Move it aside.`);
}

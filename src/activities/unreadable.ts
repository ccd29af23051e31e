import { StoredFileError } from '../jobs/durable-file.ts';

/** No time and no other worker makes these readable. */
const UNREADABLE: readonly string[] = ['EACCES', 'EPERM', 'ELOOP', 'ENOTDIR'];

/**
 * After a reset a person goes on from files that others may have damaged: one that cannot be read makes the outcome of its
 * call unknown, and the run goes on. Answers what the model is told. Throws what is another matter: trouble that passes,
 * and a file of a newer version, which only that version may judge.
 */
export function unreadableOutcome(error: unknown): string {
  const file = unreadableFile(error);
  if (file === undefined) throw error;
  return `outcome unknown: ${file} cannot be read`;
}

function unreadableFile(error: unknown): string | undefined {
  if (error instanceof StoredFileError) return error.isNewer ? undefined : error.file;
  if (!(error instanceof Error)) return undefined;
  const { code = '', path } = error as NodeJS.ErrnoException;
  return UNREADABLE.includes(code) ? path : undefined;
}

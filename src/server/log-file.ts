import { closeSync, existsSync, openSync, readSync, renameSync, statSync } from 'node:fs';

/** Above this a log is set aside (`.1`, one generation) when its process starts anew. */
const LARGEST_LOG_BYTES = 10 * 1024 * 1024;

/** Opens a log for appending; the caller closes the descriptor once the child has it. */
export function openLog(file: string): number {
  if (existsSync(file) && statSync(file).size > LARGEST_LOG_BYTES) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

/** The last lines of a log, for an error message. */
export function lastLines(file: string, count: number): string {
  if (!existsSync(file)) return '';
  const fd = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(4096);
    const length = readSync(fd, bytes, 0, bytes.length, Math.max(0, statSync(file).size - bytes.length));
    const lines = bytes.toString('utf8', 0, length).trimEnd().split('\n');
    return lines.slice(-count).join('\n');
  } finally {
    closeSync(fd);
  }
}

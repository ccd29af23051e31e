import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/**
 * Ids of the processes that work in a folder or below and whose command line contains a text. The folder keeps test runs
 * on one machine apart.
 */
export function processesIn(folder: string, text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => look(pid, commandLine).includes(text) && look(pid, workingFolder).startsWith(folder))
    .map(Number);
}

function commandLine(pid: string): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}

function workingFolder(pid: string): string {
  return readlinkSync(`/proc/${pid}/cwd`);
}

function look(pid: string, read: (pid: string) => string): string {
  try {
    return read(pid);
  } catch {
    // It ended between the listing and the look.
    return '';
  }
}

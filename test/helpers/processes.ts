import { readFileSync, readdirSync } from 'node:fs';

/** Ids of the processes whose command line contains a text, this one left out. */
export function processesIn(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => commandLine(pid).includes(text))
    .map(Number);
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // It ended between the listing and the look.
    return '';
  }
}

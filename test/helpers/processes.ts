import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/**
 * Ids of the processes that work in a folder or below and whose command line contains a text. The folder keeps test runs
 * on one machine apart.
 */
export function processesIn(folder: string, text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => commandLine(pid).includes(text) && workingFolder(pid).startsWith(folder))
    .map(Number);
}

/** Whether a process is there and has not ended; one that only waits for its parent to take note has. */
export function isRunning(pid: number): boolean {
  const stat = ifThere(() => readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? '';
  return stat !== '' && !/\) [ZX] /.test(stat);
}

/** Which sockets a process has, by the kernel's numbers for them. */
export function socketInodes(pid: number): Set<string> {
  const folder = `/proc/${pid}/fd`;
  const targets = readdirSync(folder).map((name) => ifThere(() => readlinkSync(`${folder}/${name}`)) ?? '');
  return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
}

function commandLine(pid: string): string {
  return (ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '').replaceAll('\0', ' ');
}

function workingFolder(pid: string): string {
  return ifThere(() => readlinkSync(`/proc/${pid}/cwd`)) ?? '';
}

/** Undefined for what ended or was closed between the listing and the look, and for what belongs to somebody else. */
function ifThere<Value>(look: () => Value): Value | undefined {
  try {
    return look();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(code)) return undefined;
    throw error;
  }
}

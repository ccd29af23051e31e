import { readFileSync, readdirSync } from 'node:fs';

/** A process of the world under test, as the process table shows it. */
export interface FoundProcess {
  readonly pid: number;
  readonly command: string;
}

/** Processes that name the folder in their command line or have it as their ERRAND_HOME. Zombies are none. */
export function processesOf(folder: string): FoundProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const command = readIfThere(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim();
      const isOurs =
        command.includes(folder) || readIfThere(`/proc/${name}/environ`).includes(`ERRAND_HOME=${folder}/`);
      return command !== '' && isOurs ? [{ pid: Number(name), command }] : [];
    });
}

/** It may have ended meanwhile. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

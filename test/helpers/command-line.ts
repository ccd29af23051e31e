import { execFile } from 'node:child_process';
import { resolve } from 'node:path';

/** The built command line. */
export const CLI = resolve(import.meta.dirname, '../../dist/cli/main.js');

/** How a command line of a process of its own ended. */
export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the built command line, as a person would, in a process of its own. */
export function commandLine(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Ended> {
  return new Promise((done) => {
    const child = execFile(process.execPath, [CLI, ...args], { env, cwd }, (_, out, err) =>
      done({ code: child.exitCode, out, err }),
    );
  });
}

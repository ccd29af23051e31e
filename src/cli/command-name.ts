import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Config, Environment } from '../config.ts';

/** How a person calls this errand: by its name where PATH has it, else by its path. */
export function commandName({ project }: Config, env: Environment): string {
  const own = join(project, 'bin', 'errand');
  const onPath = (env['PATH'] ?? '').split(delimiter).some((folder) => isSameFile(join(folder, 'errand'), own));
  return onPath ? 'errand' : own;
}

function isSameFile(file: string, other: string): boolean {
  try {
    return realpathSync(file) === realpathSync(other);
  } catch {
    return false; // One of them is not there.
  }
}

import { realpathSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { CliError } from './cli-error.ts';

/** The folder a run may work in, by its real path; a CliError says why one cannot be used. */
export function resolveWorkspace(config: Config, cwd: string, wanted = '.'): string {
  const path = resolve(cwd, wanted);
  const workspace = realFolder(path);
  const home = realOrSame(config.home.value);
  if (isInside(config.project, workspace)) {
    throw new CliError(`The workspace ${workspace} is errand's own tree. Name another folder: --workspace <dir>.`);
  }
  if (isInside(home, workspace) || isInside(workspace, home)) {
    throw new CliError(
      `The workspace ${workspace} and ERRAND_HOME (${home}) are one in the other; no tool may reach errand's own state. ` +
        'Name another folder: --workspace <dir>, or set ERRAND_HOME to one outside of it.',
    );
  }
  assertAllowed(config, workspace);
  return workspace;
}

function realFolder(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined)
    throw new CliError(`The workspace ${path} does not exist. Create it, or name another: --workspace <dir>.`);
  if (!stats.isDirectory())
    throw new CliError(`The workspace ${path} is not a folder. Name a folder: --workspace <dir>.`);
  return realpathSync(path);
}

function assertAllowed({ ceiling, configFile }: Config, workspace: string): void {
  const { roots } = ceiling.value;
  if (roots === undefined || roots.some((root) => isInside(realOrSame(root), workspace))) return;
  throw new CliError(`The workspace ${workspace} is outside ceiling.roots of ${configFile}: ${roots.join(', ')}.`);
}

function realOrSame(path: string): string {
  return statSync(path, { throwIfNoEntry: false }) === undefined ? path : realpathSync(path);
}

function isInside(folder: string, path: string): boolean {
  const steps = relative(folder, path);
  return steps === '' || (!steps.startsWith('..') && !steps.startsWith('/'));
}

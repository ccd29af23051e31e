import type { ResolvedPath } from './paths.ts';
import { ToolError } from './tool.ts';
import { rootOf } from './walk.ts';

/** Folders that configure an agent: whoever writes there arms the next run. */
const SETTINGS_FOLDERS = ['.claude', '.errand'];

/** Inside `.git`, what makes git run programs. */
const GIT_SETTINGS = ['hooks', 'config', 'config.worktree'];

/** Throws ToolError when a file must not be written by any tool: a workspace cannot arm itself. */
export function requireWritable(path: ResolvedPath, roots: readonly string[]): void {
  for (const name of [path.realPath, ...path.aliases]) {
    const part = protectedPart(name, roots);
    if (part === undefined) continue;
    throw new ToolError(`'${name}' cannot be written: ${part} is read-only to every tool. Ask the user to change it.`);
  }
}

/** The protected folder or file a path is in, if any. Without regard to case: some file systems have none. */
function protectedPart(path: string, roots: readonly string[]): string | undefined {
  const names = path
    .slice(rootOf(path, roots)?.length ?? 0)
    .split('/')
    .map((name) => name.toLowerCase());
  const folder = names.find((name) => SETTINGS_FOLDERS.includes(name));
  if (folder !== undefined) return `${folder}/`;
  const git = names.indexOf('.git');
  if (git === -1) return undefined;
  // A `.git` file names the real git folder, so writing it would bring other hooks.
  if (git === names.length - 1) return '.git';
  const setting = names.slice(git + 1).find((name) => GIT_SETTINGS.includes(name));
  return setting === undefined ? undefined : `.git/${setting}`;
}

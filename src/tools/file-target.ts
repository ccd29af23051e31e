import type { Stats } from 'node:fs';
import { requireOwnerWrite, sha256 } from './atomic-write.ts';
import { MAX_WHOLE_BYTES, readUpTo, shownSize } from './content.ts';
import type { ResolvedPath } from './paths.ts';
import { openFile, pathScope, realPathInside, shownPath } from './paths.ts';
import { requireWritable } from './protected-paths.ts';
import { pathActions, requireNotDenied } from './read-access.ts';
import type { ToolContext } from './tool.ts';
import { ToolError } from './tool.ts';

/** A file as it is before a change. */
export interface CurrentFile {
  readonly content: Buffer;
  readonly sha256: string;
  /** Permission bits without set-user-id and set-group-id: new content does not inherit those. */
  readonly mode: number;
}

export interface FileTarget {
  readonly realPath: string;
  /** As shown to the model. */
  readonly name: string;
  /** Undefined: there is no such file yet. */
  readonly current: CurrentFile | undefined;
}

/** Resolves the file of a write or edit; throws ToolError when it is out of reach or protected. */
export async function resolveTarget(path: string, context: ToolContext): Promise<ResolvedPath> {
  const found = await realPathInside(path, pathScope(context));
  requireWritable(found, context.policy.roots);
  return found;
}

/** Looks at the file a change is about; throws ToolError when it may not or cannot be changed. */
export async function inspectTarget(tool: string, path: string, context: ToolContext): Promise<FileTarget> {
  const found = await resolveTarget(path, context);
  const name = shownPath(found.realPath, context.workspace);
  requireNotDenied(context, pathActions(tool, 'write', found));
  if (found.stat === undefined) return { realPath: found.realPath, name, current: undefined };
  requireOwnerWrite(name, found.stat);
  return { realPath: found.realPath, name, current: await readCurrent(found.realPath, name, context) };
}

/** Throws ToolError unless the agent saw this very content; answers whether it saw all of it. */
export function requireSeen(
  target: FileTarget,
  current: CurrentFile,
  context: ToolContext,
): { readonly whole: boolean } {
  const seen = context.reads.get(target.realPath);
  if (seen === undefined) throw new ToolError(`You have not read '${target.name}' yet. Read it first, then try again.`);
  if (seen.sha256 === current.sha256) return { whole: seen.whole };
  throw new ToolError(
    `'${target.name}' has changed since you read it (by another agent, a command or a person). ` +
      'Read it again before you change it, so that nothing is lost.',
  );
}

async function readCurrent(realPath: string, name: string, context: ToolContext): Promise<CurrentFile> {
  const file = await openFile(realPath, pathScope(context));
  try {
    const { content, complete } = await readUpTo(file, MAX_WHOLE_BYTES);
    if (!complete) throw tooLarge(name, file.stat);
    return { content, sha256: sha256(content), mode: file.stat.mode & 0o1777 };
  } finally {
    await file.handle.close();
  }
}

function tooLarge(name: string, stat: Stats): ToolError {
  return new ToolError(
    `'${name}' has ${shownSize(stat.size)}; this tool changes files up to ${shownSize(MAX_WHOLE_BYTES)}. Use bash.`,
  );
}

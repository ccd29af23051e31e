import { ToolError } from './tool.ts';

/** What the model can answer becomes news for it; the rest (disk full, no descriptors left) is the caller's. */
export function pathProblem(path: string, error: unknown): unknown {
  if (hasCode(error, 'EACCES', 'EPERM')) return new ToolError(`No permission for '${path}'.`, { cause: error });
  if (hasCode(error, 'ENAMETOOLONG')) return new ToolError(`The path '${path}' is too long.`, { cause: error });
  if (hasCode(error, 'EROFS')) return new ToolError(`'${path}' is on a read-only file system.`, { cause: error });
  return error;
}

/** Whether an unknown error is a Node error with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code);
}

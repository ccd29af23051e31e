/** Absolute POSIX paths as plain text; nothing here looks at a disk. */

/** Names between the slashes. `.` and `..` are worked off; `..` at the top stays at the top. */
export function pathSegments(path: string): string[] {
  const segments: string[] = [];
  for (const name of path.split('/')) {
    if (name === '..') segments.pop();
    else if (name !== '' && name !== '.') segments.push(name);
  }
  return segments;
}

/** One spelling per path: no trailing slash, no `.`, no `..`. */
export function plainPath(path: string): string {
  return `/${pathSegments(path).join('/')}`;
}

/** Whether `path` is `folder` or below it. */
export function isInside(path: string, folder: string): boolean {
  const inner = plainPath(path);
  const outer = plainPath(folder);
  return outer === '/' || inner === outer || inner.startsWith(`${outer}/`);
}

/** Resolves what a person or a shell command wrote against a folder. */
export function resolvePath(base: string, path: string): string {
  return plainPath(path.startsWith('/') ? path : `${base}/${path}`);
}

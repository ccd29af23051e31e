import { join } from 'node:path';
import { z } from 'zod';
import { newestFirst } from './newest-first.ts';
import { openFolder, pathScope, realPathInside, shownPath } from './paths.ts';
import { pathActions, requireNotDenied, searchFilter } from './read-access.ts';
import type { RipgrepEnd } from './ripgrep.ts';
import { EXCLUDED, pathErrors, ripgrep, SEARCH_FLAGS, searchError } from './ripgrep.ts';
import { resultText, summaryLine } from './text.ts';
import type { ReadTool, ToolContext, ToolResult } from './tool.ts';
import { ToolError } from './tool.ts';
import { folderEntry } from './walk.ts';

const MAX_SHOWN = 100;
/** Bounds memory and the sorting; more are not even looked at. */
const MAX_FOUND = 100_000;
const TIMEOUT_MS = 20_000;

const schema = z.strictObject({
  pattern: z.string().min(1).max(1000).describe('Glob pattern such as **/*.ts or src/**/test_*.py.'),
  path: z.string().min(1).max(4096).optional().describe('Folder to search in. Default: the workspace.'),
});

type Input = z.output<typeof schema>;

export const globTool: ReadTool<typeof schema> = {
  name: 'glob',
  effect: 'none',
  schema,
  description: [
    `Lists files whose path matches a glob pattern, newest first, at most ${MAX_SHOWN}.`,
    'A pattern without a slash matches names in every folder. Hidden files are listed;',
    'what .gitignore names, .git, and files the policy keeps from you are not. Links are not followed.',
  ].join(' '),
  summarize: (input) => summaryLine(`glob ${input.pattern}${input.path === undefined ? '' : ` in ${input.path}`}`),

  async actions(input, context) {
    return pathActions('glob', 'read', await realPathInside(input.path ?? '.', pathScope(context)));
  },

  async execute(input, context) {
    if (input.pattern.split('/').includes('..')) {
      throw new ToolError(`The pattern '${input.pattern}' has '..' in it. Give the folder to search in as path.`);
    }
    const opened = await openFolder(input.path ?? '.', pathScope(context));
    try {
      requireNotDenied(context, pathActions('glob', 'read', opened));
      const search = { cwd: folderEntry(opened.folder, opened.realPath), folder: opened.realPath };
      return await listMatches(relativePattern(input, opened.realPath), search, context);
    } finally {
      await opened.folder.close();
    }
  },
};

interface Search {
  readonly cwd: string;
  /** Real path of the folder. */
  readonly folder: string;
}

interface Listing {
  readonly paths: readonly string[];
  readonly end: RipgrepEnd;
}

/** An absolute pattern is taken as one of the folder it names. */
function relativePattern(input: Input, folder: string): string {
  const { pattern } = input;
  if (!pattern.startsWith('/')) return pattern.replace(/^(\.\/)+/, '');
  if (pattern.startsWith(`${folder}/`)) return pattern.slice(folder.length + 1);
  throw new ToolError(
    `The pattern '${pattern}' is not below ${folder}. Give the folder as path and a relative pattern.`,
  );
}

async function listMatches(pattern: string, search: Search, context: ToolContext): Promise<ToolResult> {
  const found = await findFiles(pattern, search, context);
  const allowed = searchFilter(context, 'glob', search.folder);
  const paths = found.paths.map((path) => join(search.folder, path)).filter(allowed);
  const sorted = await newestFirst(paths, search.folder);
  const shown = sorted.slice(0, MAX_SHOWN).map((path) => shownPath(path, context.workspace));
  const notes = [countNote(sorted.length), ...endNotes(found.end)].filter((note) => note !== '');
  return { text: resultText([...shown, ...notes.map((note) => `[${note}]`)].join('\n')), isError: false };
}

/**
 * A positive glob makes ripgrep list ignored files, too, so those that match are looked up in the list of files that
 * are not ignored. Both lists come from ripgrep's own globs, whose matching takes linear time.
 */
async function findFiles(pattern: string, search: Search, context: ToolContext): Promise<Listing> {
  if (['**', '**/*', '*'].includes(pattern)) return await list([], search, { context, limit: MAX_FOUND });
  const matching = await list([`--glob=${pattern}`], search, { context, limit: MAX_FOUND });
  if (matching.paths.length === 0) return matching;
  const wanted = new Set(matching.paths);
  const kept = await list([], search, { context, limit: MAX_FOUND, isWanted: (path) => wanted.has(path) });
  return { paths: kept.paths, end: { ...kept.end, stopped: matching.end.stopped ?? kept.end.stopped } };
}

interface ListOptions {
  readonly context: ToolContext;
  readonly limit: number;
  readonly isWanted?: (path: string) => boolean;
}

async function list(globs: readonly string[], search: Search, options: ListOptions): Promise<Listing> {
  const paths: string[] = [];
  const end = await ripgrep({
    args: ['--files', '--null', ...SEARCH_FLAGS, ...globs, ...EXCLUDED, './'],
    cwd: search.cwd,
    signal: options.context.signal,
    timeoutMs: TIMEOUT_MS,
    separator: 0,
    onItem(path) {
      if (options.isWanted?.(path) ?? true) paths.push(path);
      return paths.length < options.limit;
    },
  });
  if (end.exitCode === 2 && paths.length === 0 && end.errors !== '') throw new ToolError(searchError(end.errors));
  return { paths, end };
}

function countNote(count: number): string {
  if (count === 0) return 'No files match.';
  return count > MAX_SHOWN ? `The newest ${MAX_SHOWN} of ${count} files. Narrow the pattern or the path.` : '';
}

function endNotes(end: RipgrepEnd): readonly string[] {
  const stopped = {
    enough: `Stopped after ${MAX_FOUND} files; others may be newer. Narrow the pattern or the path.`,
    timeout: `Stopped after ${TIMEOUT_MS / 1000} seconds; the list is not complete. Narrow the pattern or the path.`,
  };
  return [end.stopped === undefined ? '' : stopped[end.stopped], end.errors === '' ? '' : pathErrors(end.errors)];
}

import { join } from 'node:path';
import { newestFirst } from './newest-first.ts';
import type { OpenedFolder } from './paths.ts';
import { shownPath } from './paths.ts';
import { searchFilter } from './read-access.ts';
import type { GrepInput } from './grep.ts';
import type { RipgrepEnd, RipgrepRun } from './ripgrep.ts';
import { EXCLUDED, isPathError, pathErrors, ripgrep, SEARCH_FLAGS, searchError } from './ripgrep.ts';
import { headOf } from '../store/text.ts';
import { MAX_RESULT_BYTES, resultText } from './text.ts';
import type { ToolContext, ToolResult } from './tool.ts';
import { ToolError } from './tool.ts';
import { folderEntry } from './walk.ts';

const TIMEOUT_MS = 60_000;
const MAX_COLUMNS = 2000;
/** Room for the notices below the matches. */
const NOTICE_BYTES = 2048;
/** Files with matches that are sorted by age; more are not looked at. */
const MAX_FILES = 100_000;
/** A multi-line search holds a whole file in memory. */
const MAX_MULTILINE_FILE = '64M';

/** Searches one file that is already open. */
export async function searchOneFile(
  input: GrepInput,
  file: { readonly fd: number; readonly realPath: string },
  context: ToolContext,
): Promise<ToolResult> {
  const name = shownPath(file.realPath, context.workspace);
  const source = { args: ['--', '-'], cwd: '/', stdin: file.fd };
  return await search(input, source, context, () => name);
}

/**
 * Searches a folder that is already open. What lies below is found by ripgrep itself, by name and without following
 * links; if a sandboxed command swaps a folder for a link in the instant between ripgrep's look and its open, it can be
 * led out, to where that command could have read anyway.
 */
export async function searchFiles(input: GrepInput, opened: OpenedFolder, context: ToolContext): Promise<ToolResult> {
  const allowed = searchFilter(context, 'grep', opened.realPath);
  // Matches of one file come together, so the latest answer is enough.
  let latest: { readonly path: string; readonly name: string | undefined } | undefined;
  const nameOf = (path: string): string | undefined => {
    if (latest?.path !== path) {
      const realPath = join(opened.realPath, path);
      latest = { path, name: allowed(realPath) ? shownPath(realPath, context.workspace) : undefined };
    }
    return latest.name;
  };
  const source = { args: [...EXCLUDED, '--', './'], cwd: folderEntry(opened.folder, opened.realPath) };
  return await search(input, source, context, nameOf);
}

interface Source {
  /** Ends the command line. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly stdin?: number;
}

/** How a file is shown; undefined: it may not be. */
type NameOf = (path: string) => string | undefined;

async function search(input: GrepInput, source: Source, context: ToolContext, nameOf: NameOf): Promise<ToolResult> {
  const run = { ...source, signal: context.signal, timeoutMs: TIMEOUT_MS };
  const mode = input.output_mode ?? 'files_with_matches';
  const found = await (mode === 'files_with_matches' ? findFiles : findLines)(input, run, nameOf, context);
  const { end, entries } = found;
  if (end.exitCode === 2 && entries.length === 0 && !found.hasMore && !isPathError(end.errors)) {
    throw new ToolError(`The search failed: ${searchError(end.errors)}`);
  }
  const notes = [...moreNotes(input, found), ...endNotes(end)];
  return { text: resultText([...entries, ...notes.map((note) => `[${note}]`)].join('\n')), isError: false };
}

interface Found {
  readonly entries: readonly string[];
  readonly hasMore: boolean;
  /** How many entries there are in all, if known. */
  readonly total?: number;
  readonly end: RipgrepEnd;
}

type Run = Omit<RipgrepRun, 'separator' | 'onItem'>;

async function findFiles(input: GrepInput, run: Run, nameOf: NameOf, context: ToolContext): Promise<Found> {
  const names: string[] = [];
  const end = await ripgrep({
    ...{ ...run, args: [...flags(input), '--files-with-matches', '--null', ...run.args], separator: 0 },
    onItem(path) {
      const name = nameOf(path);
      if (name !== undefined) names.push(name);
      return names.length < MAX_FILES;
    },
  });
  const sorted = await newestFirst(names, context.workspace);
  const [from, limit] = [input.offset ?? 0, input.head_limit ?? names.length];
  const entries = withinBytes(sorted.slice(from, from + limit));
  return { entries, hasMore: from + entries.length < sorted.length, total: sorted.length, end };
}

/** Lines come in the order of the paths, so that `offset` continues where the last answer ended. */
async function findLines(input: GrepInput, run: Run, nameOf: NameOf): Promise<Found> {
  const page = newPage(input);
  const modeFlags = input.output_mode === 'count' ? ['--count'] : contentFlags(input);
  const end = await ripgrep({
    ...{ ...run, args: [...flags(input), '--sort=path', '--null', ...modeFlags, ...run.args], separator: 10 },
    onItem: (line) => takeLine(page, line, nameOf),
  });
  return { entries: page.entries, hasMore: page.isFull, end };
}

function flags(input: GrepInput): readonly string[] {
  return [
    ...SEARCH_FLAGS,
    ...['--no-heading', '--with-filename', `--regexp=${input.pattern}`],
    ...(input['-i'] ? ['--ignore-case'] : []),
    ...(input.multiline ? ['--multiline', '--multiline-dotall', `--max-filesize=${MAX_MULTILINE_FILE}`] : []),
    ...(input.glob === undefined ? [] : [`--glob=${input.glob}`]),
    ...(input.type === undefined ? [] : [`--type=${input.type}`]),
  ];
}

function contentFlags(input: GrepInput): readonly string[] {
  const around = input['-C'] ?? 0;
  return [
    ...['--line-number', `--max-columns=${MAX_COLUMNS}`, '--max-columns-preview', '--context-separator=--'],
    ...[`--after-context=${input['-A'] ?? around}`, `--before-context=${input['-B'] ?? around}`],
  ];
}

interface Page {
  readonly entries: string[];
  readonly limit: number;
  readonly withNumbers: boolean;
  skip: number;
  bytes: number;
  /** A separator between groups is due before the next line. */
  isGap: boolean;
  isFull: boolean;
}

function newPage(input: GrepInput): Page {
  const withNumbers = input.output_mode === 'count' || input['-n'] !== false;
  const { offset: skip = 0, head_limit: limit = Infinity } = input;
  return { entries: [], limit, withNumbers, skip, bytes: 0, isGap: false, isFull: false };
}

/** False: the page is full and there is more. */
function takeLine(page: Page, line: string, nameOf: NameOf): boolean {
  const entry = toEntry(page, line, nameOf);
  if (entry === undefined) return true;
  if (page.skip > 0) {
    page.skip--;
    return true;
  }
  const gap = page.isGap && page.entries.length > 0 ? ['--'] : [];
  const bytes = Buffer.byteLength(entry) + 1;
  page.isFull = page.entries.length >= page.limit || page.bytes + bytes > MAX_RESULT_BYTES - NOTICE_BYTES;
  if (page.isFull) return false;
  page.isGap = false;
  page.bytes += bytes;
  page.entries.push([...gap, entry].join('\n'));
  return true;
}

/** `path NUL 12:text` for a match, `path NUL 12-text` for context, `path NUL 3` for a count. */
function toEntry(page: Page, line: string, nameOf: NameOf): string | undefined {
  const at = line.indexOf('\0');
  if (at === -1) {
    page.isGap ||= line === '--';
    return undefined;
  }
  const name = nameOf(line.slice(0, at));
  if (name === undefined) return undefined;
  const rest = headOf(line.slice(at + 1).replace(/\r$/, ''), MAX_COLUMNS * 4);
  const [, number = '', mark = ':', text = rest] = /^(\d+)([:-])([^]*)$/.exec(rest) ?? [];
  return page.withNumbers ? `${name}${mark}${number}${number === '' ? '' : mark}${text}` : `${name}${mark}${text}`;
}

function withinBytes(names: readonly string[]): readonly string[] {
  let bytes = 0;
  return names.filter((name) => (bytes += Buffer.byteLength(name) + 1) <= MAX_RESULT_BYTES - NOTICE_BYTES);
}

function moreNotes(input: GrepInput, found: Found): readonly string[] {
  const from = input.offset ?? 0;
  if (found.entries.length === 0) return [from > 0 ? `Nothing at offset ${from}.` : 'No matches.'];
  if (!found.hasMore) return [];
  const total = found.total === undefined ? '' : ` of ${found.total}`;
  return [
    `Entries ${from + 1} to ${from + found.entries.length}${total}. Go on with offset=${from + found.entries.length}.`,
  ];
}

function endNotes(end: RipgrepEnd): readonly string[] {
  const timeout = `Stopped after ${TIMEOUT_MS / 1000} seconds; there may be more. Narrow the path, glob or type.`;
  return [...(end.stopped === 'timeout' ? [timeout] : []), ...(end.errors === '' ? [] : [pathErrors(end.errors)])];
}

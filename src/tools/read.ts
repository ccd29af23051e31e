import { z } from 'zod';
import type { OpenedFile } from './paths.ts';
import { openFile, readScope, realPathInside, shownPath } from './paths.ts';
import { sha256 } from './atomic-write.ts';
import {
  binaryProblem,
  MAX_WHOLE_BYTES,
  readChunks,
  readUpTo,
  requireText,
  shownSize,
  SNIFF_BYTES,
  toFileText,
  withoutBom,
} from './content.ts';
import type { View, Window } from './line-window.ts';
import { isWhole, viewLines } from './line-window.ts';
import { pathActions, requireNotDenied } from './read-access.ts';
import { counted, MAX_RESULT_BYTES, resultText, summaryOfPath } from './text.ts';
import type { ReadTool, ToolContext, ToolFacts, ToolResult } from './tool.ts';

/** Lines shown when no limit is given. */
export const DEFAULT_LINES = 2000;

/** Room for the notices below the lines. */
const NOTICE_BYTES = 1024;

const schema = z.strictObject({
  file_path: z.string().min(1).max(4096).describe('The file, absolute or relative to the workspace.'),
  offset: z.number().int().min(1).max(2_000_000_000).optional().describe('First line to show, counted from 1.'),
  limit: z.number().int().min(1).max(1_000_000).optional().describe(`Most lines to show. Default ${DEFAULT_LINES}.`),
});

type Input = z.output<typeof schema>;

export const readTool: ReadTool<typeof schema> = {
  name: 'read',
  effect: 'none',
  schema,
  description: [
    'Shows a text file. Each line comes as its number, a tab, and the content exactly as it is in the file;',
    'number and tab are not part of the file.',
    `Without offset and limit the first ${DEFAULT_LINES} lines are shown, at most 64 KiB; a notice says how to go on.`,
    'Lines over 2000 characters are cut. Control characters and bytes that are not UTF-8 are shown as \\xNN.',
    'Read a file whole before you change it with edit or write.',
    'Folders, images, PDFs and other binary files cannot be read; use glob to list a folder.',
  ].join(' '),
  summarize: (input) => summaryOfPath('read', input.file_path),

  async actions(input, context) {
    return pathActions('read', 'read', await realPathInside(input.file_path, readScope(context)));
  },

  async execute(input, context) {
    const file = await openFile(input.file_path, readScope(context));
    try {
      requireNotDenied(context, pathActions('read', 'read', file));
      return await readOpened(input, file, context);
    } finally {
      await file.handle.close();
    }
  },
};

/** How the tool shows a whole file when asked without offset and limit. */
export const DEFAULT_WINDOW: Window = { offset: 1, limit: DEFAULT_LINES, maxBytes: MAX_RESULT_BYTES - NOTICE_BYTES };

async function readOpened(input: Input, file: OpenedFile, context: ToolContext): Promise<ToolResult> {
  const window = { ...DEFAULT_WINDOW, offset: input.offset ?? 1, limit: input.limit ?? DEFAULT_LINES };
  const { content, complete } = await readUpTo(file, file.stat.size > MAX_WHOLE_BYTES ? SNIFF_BYTES : MAX_WHOLE_BYTES);
  const name = shownPath(file.realPath, context.workspace);
  requireText(name, content, Math.max(file.stat.size, content.length));
  if (!complete) return await readHuge(name, file, { window, signal: context.signal });

  const view = await viewLines([withoutBom(content)], window);
  const facts = { read: { path: file.realPath, sha256: sha256(content), whole: isWhole(view, window) } };
  return toResult(view, notices(view, window, content), facts);
}

/** Too large to be held: only as much is read as the window needs, and no hash is taken, so it cannot be edited. */
async function readHuge(
  name: string,
  file: OpenedFile,
  options: { readonly window: Window; readonly signal: AbortSignal },
): Promise<ToolResult> {
  const view = await viewLines(textChunks(name, file, options.signal), options.window);
  const size = shownSize(file.stat.size);
  const note = `The file has ${size}. Above ${shownSize(MAX_WHOLE_BYTES)} it can be read in parts but not edited.`;
  return toResult(view, [...notices(view, options.window), note], undefined);
}

async function* textChunks(name: string, file: OpenedFile, signal: AbortSignal): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of readChunks(file, signal)) {
    if (chunk.includes(0)) throw binaryProblem(name, file.stat.size);
    yield isFirst ? withoutBom(chunk) : chunk;
    isFirst = false;
  }
}

function toResult(view: View, notes: readonly string[], facts: ToolFacts | undefined): ToolResult {
  const shownNotes = notes.map((note) => `[${note}]`).join('\n');
  const text = [view.text, shownNotes].filter((part) => part !== '').join('\n\n');
  return { text: resultText(text), isError: false, ...(facts === undefined ? {} : { facts }) };
}

function emptyNotice(view: View, window: Window): string {
  if (view.lines > 0) return '';
  if (view.totalLines === 0) return 'The file is empty.';
  return `Nothing at offset ${window.offset}: the file has ${counted(view.totalLines ?? 0, 'line')}.`;
}

function notices(view: View, window: Window, content?: Buffer): readonly string[] {
  return [
    emptyNotice(view, window),
    view.nextOffset === undefined ? '' : partNotice(view, window, content),
    view.cutLines === 0 ? '' : `${view.cutLines} of these lines are longer than 2000 characters and were cut.`,
    lineEndNotice(view),
    view.nextOffset === undefined && view.openEnd && view.lines > 0 ? 'The last line has no line end.' : '',
    content !== undefined && toFileText(content).encoding === 'latin1' ? ENCODING_NOTICE : '',
  ].filter((note) => note !== '');
}

const ENCODING_NOTICE =
  'Not UTF-8 (perhaps Latin-1, Windows-1252 or Shift-JIS): other bytes are shown as \\xNN. ' +
  'edit keeps them when old_string and new_string are plain ASCII.';

function partNotice(view: View, window: Window, content?: Buffer): string {
  const last = window.offset + view.lines - 1;
  const total = content === undefined ? '' : ` of ${countLines(content)}`;
  return `Lines ${window.offset} to ${last}${total}. Go on with offset=${last + 1}.`;
}

function lineEndNotice(view: View): string {
  if (view.crlf === 0) return '';
  return view.lf === 0 ? 'Line ends are CRLF.' : `Line ends are mixed: ${view.crlf} CRLF and ${view.lf} LF.`;
}

function countLines(content: Buffer): number {
  let count = 0;
  let at = 0;
  for (let end = content.indexOf(10); end !== -1; end = content.indexOf(10, at)) {
    count++;
    at = end + 1;
  }
  return at < content.length ? count + 1 : count;
}

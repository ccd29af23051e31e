import { z } from 'zod';
import { sha256 } from './atomic-write.ts';
import { changeCounts, summarizeChange } from './change-summary.ts';
import type { FileText } from './content.ts';
import { decodeLine, fromFileText, requireText, toFileText, withoutBom } from './content.ts';
import { missHint } from './edit-hints.ts';
import type { Match } from './edit-match.ts';
import { findMatches, lineNumberAt, replaceMatches, withoutOverlaps } from './edit-match.ts';
import type { CurrentFile, FileTarget } from './file-target.ts';
import { inspectTarget, requireSeen, resolveTarget } from './file-target.ts';
import { isWhole, viewLines } from './line-window.ts';
import { pathActions } from './read-access.ts';
import { DEFAULT_WINDOW } from './read.ts';
import { counted, resultText, summaryOfPath } from './text.ts';
import type { FileChange, FileTool } from './tool.ts';
import { ToolError } from './tool.ts';

/** How many places an ambiguous old_string is reported at. */
const MAX_PLACES = 10;

const schema = z.strictObject({
  file_path: z.string().min(1).max(4096).describe('The file, absolute or relative to the workspace.'),
  old_string: z.string().min(1).describe('The text to replace, exactly as in the file, without line numbers.'),
  new_string: z.string().describe('The text to put in its place; may be empty.'),
  replace_all: z.boolean().optional().describe('Replace every occurrence instead of exactly one. Default false.'),
});

type Input = z.output<typeof schema>;

export const editTool: FileTool<typeof schema> = {
  name: 'edit',
  effect: 'file',
  schema,
  description: [
    'Replaces one piece of a text file. old_string must match exactly, indentation included, and occur once;',
    'add neighbouring lines to make it unique, or set replace_all.',
    'The file must have been read first and be unchanged since.',
    'Newlines match CRLF line ends and keep them; everything outside the replaced text stays byte for byte.',
    'To create a file use write.',
  ].join(' '),
  summarize: (input) => summaryOfPath('edit', input.file_path),

  async actions(input, context) {
    return pathActions('edit', 'write', await resolveTarget(input.file_path, context));
  },

  async prepare(input, context) {
    const target = await inspectTarget('edit', input.file_path, context);
    if (target.current === undefined) {
      throw new ToolError(
        `'${target.name}' does not exist. Use write to create it, or glob to find the file you mean.`,
      );
    }
    const seen = requireSeen(target, target.current, context);
    requireText(target.name, target.current.content, target.current.content.length);
    if (!seen.whole) await requireTooLongToSee(target, target.current);
    return editFile(input, target, target.current, seen.whole);
  },
};

/** A partial view counts only for a file that one read cannot show whole; the exact, unique match guards the rest. */
async function requireTooLongToSee(target: FileTarget, current: CurrentFile): Promise<void> {
  if (!isWhole(await viewLines([withoutBom(current.content)], DEFAULT_WINDOW), DEFAULT_WINDOW)) return;
  throw new ToolError(`You have seen only a part of '${target.name}'. Read it whole, without offset and limit, first.`);
}

function editFile(input: Input, target: FileTarget, current: CurrentFile, whole: boolean): FileChange {
  const file = toFileText(current.content);
  const wanted = input.old_string.replace(/^\ufeff/, '');
  requirePlain(input, target, file);
  if (wanted === input.new_string) throw new ToolError('old_string and new_string are the same: nothing to change.');
  const matches = chooseMatches(findMatches(file.text, wanted), { ...input, old_string: wanted }, file, target);
  const text = replaceMatches(file.text, matches, input.new_string.replace(/^\ufeff/, ''));
  if (text === file.text) throw new ToolError(`The edit changes nothing in '${target.name}'.`);
  return toChange(target, current, { file, edited: { ...file, text }, places: matches.length, whole });
}

/** In a file that is not UTF-8 only ASCII means the same in every encoding. */
function requirePlain(input: Input, target: FileTarget, file: FileText): void {
  if (file.encoding === 'utf8' || isAscii(input.old_string + input.new_string)) return;
  throw new ToolError(
    `'${target.name}' is not UTF-8 (perhaps Latin-1, Windows-1252 or Shift-JIS), so old_string and new_string must be ` +
      'plain ASCII here. Choose a smaller old_string, or convert the file with iconv first.',
  );
}

function chooseMatches(matches: readonly Match[], input: Input, file: FileText, target: FileTarget): readonly Match[] {
  if (matches.length === 0) {
    const hint = missHint(readable(file), input.old_string);
    throw new ToolError(`old_string was not found in '${target.name}'. ${hint}`);
  }
  if (input.replace_all) return withoutOverlaps(matches);
  if (matches.length === 1) return matches;
  const lines = matches.slice(0, MAX_PLACES).map((match) => lineNumberAt(file.text, match.start));
  const more = matches.length > MAX_PLACES ? ', …' : '';
  throw new ToolError(
    `old_string occurs ${matches.length} times in '${target.name}', at lines ${lines.join(', ')}${more}. ` +
      'Add neighbouring lines to make it unique, or set replace_all.',
  );
}

interface Edit {
  readonly file: FileText;
  readonly edited: FileText;
  readonly places: number;
  readonly whole: boolean;
}

function toChange(target: FileTarget, current: CurrentFile, edit: Edit): FileChange {
  const content = fromFileText(edit.edited);
  const { added, removed, diff } = summarizeChange(readable(edit.file), readable(edit.edited));
  const [path, postSha256] = [target.realPath, sha256(content)];
  const places = edit.places === 1 ? '' : `, ${counted(edit.places, 'place')}`;
  const head = `edited ${target.name} (${changeCounts({ added, removed })}${places})`;
  const facts = {
    read: { path, sha256: postSha256, whole: edit.whole },
    wrote: { path, preSha256: current.sha256, postSha256, added, removed },
  };
  const result = { text: resultText(diff === '' ? head : `${head}\n${diff}`), isError: false, facts };
  return { path, preSha256: current.sha256, content, mode: current.mode, result };
}

/** The text as `read` shows it. */
function readable(file: FileText): string {
  return file.encoding === 'utf8' ? file.text : decodeLine(Buffer.from(file.text, 'latin1'));
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}

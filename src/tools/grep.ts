import { z } from 'zod';
import { searchFiles, searchOneFile } from './grep-search.ts';
import { openFile, openFolder, readScope, realPathInside } from './paths.ts';
import { pathActions, requireNotDenied } from './read-access.ts';
import { summaryLine } from './text.ts';
import type { ReadTool, ToolContext, ToolResult } from './tool.ts';

const DEFAULT_ENTRIES = 250;
const lines = z.number().int().min(0).max(1000).optional();

const schema = z.strictObject({
  pattern: z.string().min(1).max(10_000).describe('Regular expression, in the syntax of ripgrep.'),
  path: z.string().min(1).max(4096).optional().describe('File or folder to search in. Default: the workspace.'),
  glob: z.string().min(1).max(1000).optional().describe('Only files that match, e.g. *.ts; also lifts .gitignore.'),
  type: z.string().min(1).max(50).optional().describe('Only files of this type, e.g. js, py, rust.'),
  output_mode: z
    .enum(['files_with_matches', 'content', 'count'])
    .optional()
    .describe('What to show: names of files (default), the matching lines, or the number of them per file.'),
  '-i': z.boolean().optional().describe('Ignore case.'),
  '-n': z.boolean().optional().describe('Line numbers, with content. Default true.'),
  '-A': lines.describe('Lines of context after a match, with content.'),
  '-B': lines.describe('Lines of context before a match, with content.'),
  '-C': lines.describe('Lines of context around a match, with content.'),
  multiline: z.boolean().optional().describe('The pattern may span lines, and . matches newlines.'),
  head_limit: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe(`Most lines of output. Default ${DEFAULT_ENTRIES}.`),
  offset: z.number().int().min(0).max(1_000_000).optional().describe('Lines of output to skip. Default 0.'),
});

/** Input of grep after validation. */
export type GrepInput = z.output<typeof schema>;

export const grepTool: ReadTool<typeof schema> = {
  name: 'grep',
  effect: 'none',
  schema,
  description: [
    'Searches file contents with ripgrep. Shows the names of files with matches, newest first, unless output_mode asks',
    'for content (path:line:text) or count. Binary files, what .gitignore names, .git, and files the policy keeps from',
    'you are left out; links are not followed. Escape braces and brackets to match them literally.',
  ].join(' '),
  summarize: (input) => summaryLine(`grep ${input.pattern}${input.path === undefined ? '' : ` in ${input.path}`}`),

  async actions(input, context) {
    return pathActions('grep', 'read', await realPathInside(input.path ?? '.', readScope(context)));
  },

  async execute(input, context) {
    const path = input.path ?? '.';
    const { stat } = await realPathInside(path, readScope(context));
    const withLimits = { head_limit: DEFAULT_ENTRIES, ...input };
    return stat?.isDirectory() === false
      ? await grepFile(path, withLimits, context)
      : await grepFolder(path, withLimits, context);
  },
};

/** The file is handed over open: ripgrep does not look it up again by its name. */
async function grepFile(path: string, input: GrepInput, context: ToolContext): Promise<ToolResult> {
  const file = await openFile(path, readScope(context));
  try {
    requireNotDenied(context, pathActions('grep', 'read', file));
    return await searchOneFile(input, { fd: file.handle.fd, realPath: file.realPath }, context);
  } finally {
    await file.handle.close();
  }
}

async function grepFolder(path: string, input: GrepInput, context: ToolContext): Promise<ToolResult> {
  const opened = await openFolder(path, readScope(context));
  try {
    requireNotDenied(context, pathActions('grep', 'read', opened));
    return await searchFiles(input, opened, context);
  } finally {
    await opened.folder.close();
  }
}

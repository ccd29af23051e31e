import { z } from 'zod';
import { sha256 } from './atomic-write.ts';
import { changeCounts, countLines, summarizeChange } from './change-summary.ts';
import { toFileText } from './content.ts';
import type { CurrentFile, FileTarget } from './file-target.ts';
import { inspectTarget, requireSeen, resolveTarget } from './file-target.ts';
import { pathActions } from './read-access.ts';
import { counted, resultText, summaryOfPath } from './text.ts';
import type { FileChange, FileTool, ToolContext } from './tool.ts';
import { ToolError } from './tool.ts';

/** Before umask. */
const NEW_FILE_MODE = 0o666;

const schema = z.strictObject({
  file_path: z.string().min(1).max(4096).describe('The file, absolute or relative to the workspace.'),
  content: z.string().describe('The whole new content, written exactly as given.'),
});

export const writeTool: FileTool<typeof schema> = {
  name: 'write',
  effect: 'file',
  schema,
  description: [
    'Creates a file or replaces its whole content. Nothing is added to the content, not even a final newline.',
    'Missing parent folders are made. A file that exists must have been read whole first, and be unchanged since.',
    'To change a part of a file use edit.',
  ].join(' '),
  summarize: (input) => summaryOfPath('write', input.file_path),

  async actions(input, context) {
    return pathActions('write', 'write', await resolveTarget(input.file_path, context));
  },

  async prepare(input, context) {
    const target = await inspectTarget('write', input.file_path, context);
    const content = Buffer.from(input.content, 'utf8');
    if (target.current === undefined) return creation(target, content);
    requireWhole(target, target.current, context);
    return replacement(target, target.current, content);
  },
};

function requireWhole(target: FileTarget, current: CurrentFile, context: ToolContext): void {
  if (requireSeen(target, current, context).whole) return;
  throw new ToolError(
    `You have seen only a part of '${target.name}', and write would replace all of it. Read it whole ` +
      '(without offset and limit), change the part with edit, or remove the file with bash first.',
  );
}

function creation(target: FileTarget, content: Buffer): FileChange {
  const added = countLines(content.toString('utf8'));
  return change(target, content, {
    mode: NEW_FILE_MODE,
    text: `created ${target.name} (${counted(added, 'line')})`,
    ...{ added, removed: 0 },
  });
}

function replacement(target: FileTarget, current: CurrentFile, content: Buffer): FileChange {
  const { added, removed } = summarizeChange(toFileText(current.content).text, content.toString('utf8'));
  const text = `replaced ${target.name} (${changeCounts({ added, removed })})`;
  return change(target, content, { mode: current.mode, text, added, removed });
}

function change(
  target: FileTarget,
  content: Buffer,
  about: { readonly mode: number; readonly text: string; readonly added: number; readonly removed: number },
): FileChange {
  const path = target.realPath;
  const preSha256 = target.current?.sha256 ?? null;
  const postSha256 = sha256(content);
  const { added, removed } = about;
  const facts = {
    read: { path, sha256: postSha256, whole: true },
    wrote: { path, preSha256, postSha256, added, removed },
  };
  return {
    path,
    preSha256,
    content,
    mode: about.mode,
    result: { text: resultText(about.text), isError: false, facts },
  };
}

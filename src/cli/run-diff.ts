import { existsSync } from 'node:fs';
import { colors as pc } from './colors.ts';
import type { FoundRun } from '../store/find-run.ts';
import { readFirstRecord } from '../store/read.ts';
import { diffSince } from '../snapshot/snapshot.ts';
import { readOrSay, warn, type CommandContext } from './context.ts';
import { formatLines } from './format.ts';
import { printLine } from './io.ts';
import { printable } from './text.ts';

export interface RunDiffOptions {
  readonly home: string;
  readonly run: Pick<FoundRun, 'runId' | 'file'>;
  /** Lines that are printed; the rest is counted. */
  readonly maxLines: number;
}

/** Prints what changed in the run's workspace since it began. */
export async function printRunDiff(context: CommandContext, { home, run, maxLines }: RunDiffOptions): Promise<void> {
  const { workspace } = await readOrSay(run.file, () => readFirstRecord(run.file));
  if (!existsSync(workspace)) return warn(context, `No diff: the workspace ${workspace} is not there any more.`);
  const diff = await diffSince({ home, runId: run.runId, workspace, env: context.io.env });
  if (diff === undefined)
    return warn(context, 'No diff: there is no snapshot of the workspace from the start of this run.');
  if (diff.text === '') return warn(context, 'No file of the workspace has changed.');
  printLines(context, diff.text.trimEnd().split('\n'), { maxLines, runId: run.runId });
  if (diff.cut) warn(context, 'The diff is longer than what is shown.');
}

function printLines(
  { io }: CommandContext,
  lines: readonly string[],
  { maxLines, runId }: { maxLines: number; runId: string },
): void {
  for (const line of lines.slice(0, maxLines)) printLine(io.stdout, colored(printable(line)));
  if (lines.length > maxLines)
    printLine(io.stdout, `… ${formatLines(lines.length - maxLines, 'more')}; see errand show ${runId} --diff`);
}

function colored(line: string): string {
  if (/^(?:diff |index |--- |\+\+\+ )/.test(line)) return pc.bold(line);
  if (line.startsWith('+')) return pc.green(line);
  if (line.startsWith('-')) return pc.red(line);
  return line.startsWith('@@') ? pc.cyan(line) : line;
}

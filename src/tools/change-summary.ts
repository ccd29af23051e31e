import { structuredPatch } from 'diff';
import { headOf } from '../store/text.ts';
import { counted } from './text.ts';

/** Most UTF-8 bytes of a diff in a result. */
const MAX_DIFF_BYTES = 4096;

/** Beyond that many changed lines the exact diff costs more than it tells. */
const MAX_CHANGED_LINES = 2000;

export interface ChangeSummary {
  readonly added: number;
  readonly removed: number;
  /** Unified hunks; empty for a change too large to compare. */
  readonly diff: string;
}

/** Counts added and removed lines and shows a short diff. */
export function summarizeChange(before: string, after: string): ChangeSummary {
  const patch = structuredPatch('', '', before, after, '', '', { context: 2, maxEditLength: MAX_CHANGED_LINES });
  if (patch === undefined) return { added: countLines(after), removed: countLines(before), diff: '' };
  const hunks = patch.hunks.map((hunk) => [`@@ -${hunk.oldStart} +${hunk.newStart} @@`, ...hunk.lines]);
  const lines = hunks.flat();
  return {
    added: lines.filter((line) => line.startsWith('+')).length,
    removed: lines.filter((line) => line.startsWith('-')).length,
    diff: shortDiff(lines),
  };
}

/** `+3 −2`. */
export function changeCounts(change: Pick<ChangeSummary, 'added' | 'removed'>): string {
  return `+${change.added} −${change.removed}`;
}

export function countLines(text: string): number {
  if (text === '') return 0;
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

function shortDiff(lines: readonly string[]): string {
  const diff = lines.map((line) => line.replace(/\r$/, '')).join('\n');
  const shown = headOf(diff, MAX_DIFF_BYTES);
  if (shown === diff) return diff;
  const left = lines.length - shown.split('\n').length;
  return `${shown}\n[${counted(left, 'more line')} of diff]`;
}

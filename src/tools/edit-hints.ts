import { numberedLine } from './line-window.ts';
import { headOf } from '../store/text.ts';

/** Most lines of the file in a hint, and how far the search for similar ones goes. */
const MAX_SHOWN_LINES = 12;
const MAX_COMPARED_LINES = 20_000;
const MAX_COMPARED_CHARACTERS = 300;
const MAX_HINT_BYTES = 4096;

/** Likeness (0 to 1) below which a line is no candidate. */
const LEAST_LIKENESS = 0.5;

const READ_PREFIX = /^ *\d+(\t|→)/;

/** Ways in which models mistype what they saw, most telling first. Applied line by line to both sides. */
const DIFFERENCES: readonly { readonly what: string; readonly level: (line: string) => string }[] = [
  { what: 'spaces at the end of a line differ', level: (line) => line.replace(/[ \t]+$/, '') },
  { what: 'the indentation differs (tabs against spaces?)', level: (line) => line.trim() },
  { what: 'spaces or tabs differ', level: (line) => line.replace(/[ \t]+/g, ' ').trim() },
  { what: 'quotes, dashes or special spaces differ (curly against straight?)', level: straightened },
  { what: 'upper and lower case differ', level: (line) => line.toLowerCase() },
  { what: 'accented letters are composed differently', level: (line) => line.normalize('NFC') },
  { what: 'all of that differs a little', level: (line) => straightened(line).replace(/\s+/g, '').toLowerCase() },
];

/** Says why `wanted` was not found: the nearest lines and the kind of difference. Never empty. */
export function missHint(text: string, wanted: string): string {
  const lines = text.split(/\r?\n/);
  const hint = prefixHint(lines, wanted) ?? escapeHint(lines, wanted) ?? differenceHint(lines, wanted);
  return headOf(hint ?? crHint(wanted) ?? likenessHint(lines, wanted), MAX_HINT_BYTES);
}

function prefixHint(lines: readonly string[], wanted: string): string | undefined {
  const parts = wanted.split('\n');
  if (!parts.every((line) => line === '' || READ_PREFIX.test(line))) return undefined;
  const bare = parts.map((line) => line.replace(READ_PREFIX, ''));
  const at = findLines(lines, bare, (line) => line);
  const advice = 'old_string holds the line numbers that read shows. Leave out each number and the tab after it.';
  return at === undefined ? advice : `${advice}\n${shownLines(lines, at, bare.length)}`;
}

function escapeHint(lines: readonly string[], wanted: string): string | undefined {
  if (!/\\[nt"]/.test(wanted)) return undefined;
  const meant = wanted.replace(/\\n/g, '\n').replace(/\\t/g, '\t').replace(/\\"/g, '"').split('\n');
  const at = findLines(lines, meant, (line) => line);
  if (at === undefined) return undefined;
  return `old_string has \\n, \\t or \\" as two characters where the file has one.\n${shownLines(lines, at, meant.length)}`;
}

function differenceHint(lines: readonly string[], wanted: string): string | undefined {
  const parts = wanted.split(/\r?\n/);
  for (const { what, level } of DIFFERENCES) {
    const at = findLines(lines, parts, level);
    if (at !== undefined) return `Nearest lines, where ${what}:\n${shownLines(lines, at, parts.length)}`;
  }
  return undefined;
}

function crHint(wanted: string): string | undefined {
  return wanted.includes('\r')
    ? 'old_string holds carriage returns; use plain newlines, they match CRLF too.'
    : undefined;
}

function likenessHint(lines: readonly string[], wanted: string): string {
  const parts = wanted.split(/\r?\n/);
  const best = mostAlike(lines, parts);
  if (best === undefined) return 'No line of the file is like it. Read the file again.';
  const differs = parts.findIndex((part, index) => part.trim() !== lines[best + index]?.trim());
  const where = differs === -1 ? '' : `; the first that differs is line ${best + differs + 1}`;
  return `Most similar lines${where}:\n${shownLines(lines, best, parts.length)}`;
}

/** Index of the first line where the levelled text occurs; it may start and end within a line. */
function findLines(
  lines: readonly string[],
  parts: readonly string[],
  level: (line: string) => string,
): number | undefined {
  const wanted = parts.map(level).join('\n');
  if (wanted.trim() === '') return undefined;
  const text = lines.map(level).join('\n');
  const at = text.indexOf(wanted);
  if (at === -1) return undefined;
  return text.slice(0, at).split('\n').length - 1;
}

/** Index of the line where the wanted lines fit best, judged by their longest one. */
function mostAlike(lines: readonly string[], parts: readonly string[]): number | undefined {
  const anchor = parts.reduce(
    (best, part, index) => (part.trim().length > (parts[best] ?? '').trim().length ? index : best),
    0,
  );
  const grams = pairsOf(parts[anchor] ?? '');
  let best: { readonly index: number; readonly score: number } | undefined;
  for (const [index, line] of lines.slice(0, MAX_COMPARED_LINES).entries()) {
    const score = likeness(grams, pairsOf(line)) + (parts.length > 1 ? nearness(lines, parts, index - anchor) : 0);
    if (score >= LEAST_LIKENESS && score > (best?.score ?? 0)) best = { index, score };
  }
  return best === undefined ? undefined : Math.max(0, best.index - anchor);
}

/** A little more for a place where other wanted lines stand as well: tells apart two similar blocks. */
function nearness(lines: readonly string[], parts: readonly string[], start: number): number {
  const shown = parts.slice(0, MAX_SHOWN_LINES);
  const equal = shown.filter((part, index) => part.trim() !== '' && part.trim() === lines[start + index]?.trim());
  return equal.length / shown.length;
}

/** Dice coefficient over pairs of neighbouring characters. */
function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  let common = 0;
  for (const pair of a) if (b.has(pair)) common++;
  return (2 * common) / (a.size + b.size);
}

function pairsOf(line: string): ReadonlySet<string> {
  const text = line.trim().slice(0, MAX_COMPARED_CHARACTERS);
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, index) => text.slice(index, index + 2)));
}

function shownLines(lines: readonly string[], start: number, count: number): string {
  const shown = lines.slice(start, start + Math.min(count, MAX_SHOWN_LINES));
  return shown.map((line, index) => numberedLine(start + index + 1, headOf(line, MAX_COMPARED_CHARACTERS))).join('\n');
}

function straightened(line: string): string {
  return line
    .replace(/[‘’‚‛′]/g, "'")
    .replace(/[“”„‟″]/g, '"')
    .replace(/[‐‑‒–—―−]/g, '-')
    .replace(/[\u00a0\u2000-\u200a\u202f\u3000]/g, ' ')
    .replace(/[\u200b\u200c\u200d\ufeff]/g, '')
    .replaceAll('…', '...');
}

/** A span of the text, end exclusive. */
export interface Match {
  readonly start: number;
  readonly end: number;
}

/**
 * Every place where `wanted` is found exactly, overlapping ones included. A newline in `wanted` also matches the CRLF of
 * a file, because that is how `read` shows it; a carriage return in `wanted` is taken literally.
 */
export function findMatches(text: string, wanted: string): readonly Match[] {
  if (!spansCrlf(text, wanted)) return positions(text, wanted).map((start) => ({ start, end: start + wanted.length }));
  const flat = text.replaceAll('\r\n', '\n');
  const toText = flatToText(text);
  return positions(flat, wanted).map((start) => ({ start: toText(start), end: toText(start + wanted.length) }));
}

/** The matches without those that overlap an earlier one. */
export function withoutOverlaps(matches: readonly Match[]): readonly Match[] {
  const kept: Match[] = [];
  for (const match of matches) {
    if (match.start >= (kept.at(-1)?.end ?? 0)) kept.push(match);
  }
  return kept;
}

/** Puts `replacement` in the place of every match; everything else stays as it is, byte for byte. */
export function replaceMatches(text: string, matches: readonly Match[], replacement: string): string {
  const parts: string[] = [];
  let at = 0;
  for (const match of matches) {
    parts.push(text.slice(at, match.start), withLineEnds(replacement, text, match));
    at = match.end;
  }
  return [...parts, text.slice(at)].join('');
}

/** Number of the line that holds a position, from 1. */
export function lineNumberAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < position; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

function spansCrlf(text: string, wanted: string): boolean {
  return wanted.includes('\n') && !wanted.includes('\r') && text.includes('\r\n');
}

function positions(text: string, wanted: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) found.push(at);
  return found;
}

/** Maps positions in the text without its CRs (before LF) back to the text. */
function flatToText(text: string): (position: number) => number {
  const ends: number[] = [];
  for (let at = text.indexOf('\r\n'); at !== -1; at = text.indexOf('\r\n', at + 2)) ends.push(at - ends.length);
  return (position) => position + countBelow(ends, position);
}

/** How many of the sorted numbers are below `limit`. */
function countBelow(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? Infinity) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Newlines become what they replace, or what the neighbouring lines have. Carriage returns are taken literally. */
function withLineEnds(replacement: string, text: string, match: Match): string {
  if (!replacement.includes('\n') || replacement.includes('\r')) return replacement;
  const replaced = text.slice(match.start, match.end).match(/\r?\n/g) ?? [];
  const further = replaced.at(-1) ?? neighbouringLineEnd(text, match);
  return replacement
    .split('\n')
    .flatMap((line, index) => (index === 0 ? [line] : [replaced[index - 1] ?? further, line]))
    .join('');
}

function neighbouringLineEnd(text: string, match: Match): string {
  const after = text.indexOf('\n', match.end);
  const at = after === -1 ? text.lastIndexOf('\n', match.start) : after;
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n';
}

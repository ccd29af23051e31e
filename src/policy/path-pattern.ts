import { pathSegments } from './paths.ts';
import type { Token } from './wildcard.ts';
import { matchesTokens } from './wildcard.ts';

/** Tests an absolute real path. */
export type PathPattern = (path: string) => boolean;

const ANY_DEPTH = '**';
const MOST_ALTERNATIVES = 64;
type Segment = readonly Token[] | typeof ANY_DEPTH;

/**
 * Reads a path pattern with gitignore's meaning. `//x` is absolute; `/x`, `./x` and `a/b` start at `base`; a bare name
 * or a pattern that starts with two stars matches at any depth, everywhere. What is below a match matches, too. `{a,b}`
 * stands for two patterns.
 * Parentheses are ordinary characters, as in gitignore, so that folders such as `(auth)` can be protected.
 * Throws an Error that says what is wrong with the pattern.
 */
export function parsePathPattern(pattern: string, base: string | undefined): PathPattern {
  const alternatives = expandBraces(pattern).map((one) => parseSegments(one, base));
  return (path) => {
    const names = pathSegments(path);
    return alternatives.some((segments) => matchesSegments(segments, names));
  };
}

/** Spells a real path so that a pattern means exactly this path and what is below it. */
export function patternForPath(path: string): string {
  return `//${pathSegments(path)
    .join('/')
    .replace(/[\\*?[\]{}!]/g, '\\$&')}`;
}

function parseSegments(pattern: string, base: string | undefined): Segment[] {
  if (pattern.startsWith('!')) throw new Error('a leading "!" is not supported: use the allow, ask and deny lists');
  if (pattern.startsWith('~')) throw new Error('"~/" must be made absolute where the rule is read (see withHome)');
  if (pattern.startsWith('//')) return segmentsOf(pattern);
  const bare = pattern.replace(/\/+$/, '');
  if (!bare.includes('/') || bare.startsWith(`${ANY_DEPTH}/`)) return [ANY_DEPTH, ...segmentsOf(bare)];
  if (base === undefined)
    throw new Error('a relative path needs a layer with a base folder: write "//" + absolute path');
  return [...pathSegments(base).map(literalTokens), ...segmentsOf(bare)];
}

function segmentsOf(pattern: string): Segment[] {
  const names = pattern.split('/').filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw new Error('".." is not supported: write the folder that is meant');
  if (names.length === 0) throw new Error('it names no path');
  return names.map((name) => (name === ANY_DEPTH ? ANY_DEPTH : globTokens(name)));
}

/** Keeps every position the pattern may be in, so that many `**` cost no more than one. */
function matchesSegments(segments: readonly Segment[], names: readonly string[]): boolean {
  let positions = withSkips(segments, [0]);
  for (const name of names) {
    if (positions.has(segments.length)) return true;
    positions = withSkips(
      segments,
      [...positions].flatMap((at) => nextPositions(segments, at, name)),
    );
  }
  return positions.has(segments.length);
}

function nextPositions(segments: readonly Segment[], at: number, name: string): number[] {
  const segment = segments[at];
  if (segment === undefined) return [];
  if (segment === ANY_DEPTH) return at === segments.length - 1 ? [at, at + 1] : [at];
  return matchesTokens(segment, name) ? [at + 1] : [];
}

/** `**` may also stand for no folder at all, but `a/**` does not mean `a` itself. */
function withSkips(segments: readonly Segment[], positions: readonly number[]): Set<number> {
  const all = new Set(positions);
  for (const at of all) if (segments[at] === ANY_DEPTH && at < segments.length - 1) all.add(at + 1);
  return all;
}

function literalTokens(text: string): Token[] {
  return [...text].map((char) => ({ kind: 'literal', char }));
}

function globTokens(name: string): Token[] {
  const tokens: Token[] = [];
  const chars = [...name];
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? '';
    if (char === '*') tokens.push({ kind: 'many' });
    else if (char === '?') tokens.push({ kind: 'one' });
    else if (char === '\\') tokens.push({ kind: 'literal', char: chars[++at] ?? '\\' });
    else if (char === '[') {
      const end = classEnd(chars, at);
      tokens.push(classToken(chars.slice(at + 1, end)));
      at = end;
    } else tokens.push({ kind: 'literal', char });
  }
  return tokens;
}

/** A `]` right at the start of a class is a member of it. */
function classEnd(chars: readonly string[], start: number): number {
  const first = chars[start + 1] === '!' || chars[start + 1] === '^' ? start + 2 : start + 1;
  const end = chars.indexOf(']', first + 1);
  if (end < 0) throw new Error('a "[" has no "]": write "\\[" for the character itself');
  return end;
}

function classToken(members: readonly string[]): Token {
  const negated = members[0] === '!' || members[0] === '^';
  const codes = members.slice(negated ? 1 : 0).map((char) => char.codePointAt(0) ?? 0);
  const ranges: [number, number][] = [];
  for (let at = 0; at < codes.length; at++) {
    const from = codes[at] ?? 0;
    const to = codes[at + 1] === 0x2d ? codes[at + 2] : undefined;
    if (to !== undefined && to < from) throw new Error('a range in "[…]" runs backwards');
    ranges.push([from, to ?? from]);
    if (to !== undefined) at += 2;
  }
  return { kind: 'class', ranges, negated };
}

function expandBraces(pattern: string): string[] {
  const braces = /(?<!\\)\{([^{}]*,[^{}]*)\}/.exec(pattern);
  if (!braces) return [pattern];
  const [whole, inner = ''] = braces;
  const after = pattern.slice(braces.index + whole.length);
  const all = inner.split(',').flatMap((one) => expandBraces(pattern.slice(0, braces.index) + one + after));
  if (all.length > MOST_ALTERNATIVES) throw new Error(`its braces stand for more than ${MOST_ALTERNATIVES} patterns`);
  return all;
}

import type { ShellPart } from './shell-reader.ts';
import type { ShellCommand } from './shell.ts';
import { isKeyword, parseShell } from './shell.ts';
import type { Token } from './wildcard.ts';
import { matchesTokens, starTokens } from './wildcard.ts';

/** Tests one simple command, its words joined by single blanks. */
export type CommandPattern = (text: string) => boolean;

/** Assignments that change how a program talks, not what it runs. */
const HARMLESS_ASSIGNMENT = /^(?:CI|NODE_ENV|LANG|LC_[A-Z]+|TZ|TERM|NO_COLOR|FORCE_COLOR)=/;
const DURATION = /^\d+(?:\.\d+)?[smhd]?$/;
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash']);
const WRAPPERS = new Set(
  'timeout nice nohup env command builtin exec xargs sudo doas time stdbuf setsid ionice chrt parallel'.split(' '),
);
const DEEPEST_SCRIPT = 4;

/**
 * `npm test` is that command; `npm test:*` and `npm test *` are that command with or without more words; any other `*`
 * is any text.
 */
export function parseCommandPattern(specifier: string): CommandPattern {
  const text = specifier.trim().replace(/\s+/g, ' ');
  const prefix = /^(.+?)(?::\*| \*)$/.exec(text)?.[1];
  const tokens = (prefix === undefined ? [text] : [prefix, `${prefix} *`]).map(commandTokens);
  return (command) => tokens.some((one) => matchesTokens(one, command));
}

/** Whether every part of the command line is plain words and matches one of the patterns. */
export function isAllowedCommand(command: string, patterns: readonly CommandPattern[]): boolean {
  const parts = parseShell(command)?.parts ?? [];
  return parts.length > 0 && parts.every((part) => isAllowedPart(part, patterns));
}

/** What a deny or ask rule is tested against, wrappers and nested scripts taken off. Undefined: cannot be read. */
export function commandSpellings(command: string): readonly string[] | undefined {
  const parts = scriptParts(command, 0);
  return parts && [command.trim(), ...parts.flatMap(partSpellings)];
}

/** Words and redirect targets of a command line: what might name a file. */
export function commandWords(command: string): { readonly words: string[]; readonly writes: string[] } {
  const parts = scriptParts(command, 0) ?? [];
  const redirects = parts.flatMap((part) => part.redirects).filter(({ operator }) => !operator.startsWith('<<'));
  return {
    words: [...parts.flatMap((part) => [...part.assignments, ...part.words]), ...redirects.map(({ target }) => target)],
    writes: redirects.filter(({ operator }) => operator.includes('>')).map(({ target }) => target),
  };
}

/** A rule without `*` is read as the shell would read it, so that quotes in it mean what they mean in a command. */
function commandTokens(text: string): Token[] {
  if (text.includes('*')) return starTokens(text);
  const parts = parseShell(text)?.parts;
  const [only] = parts ?? [];
  return starTokens(parts?.length === 1 && only?.plain ? joined(only.words) : text);
}

function isAllowedPart(part: ShellPart, patterns: readonly CommandPattern[]): boolean {
  if (!part.plain || !part.assignments.every((one) => HARMLESS_ASSIGNMENT.test(one))) return false;
  return [part.words, withoutTimer(part.words)].some((words) => patterns.some((matches) => matches(joined(words))));
}

/** Only wrappers that change when and how fast a command runs, only in their plainest form. */
function withoutTimer(words: readonly string[]): readonly string[] {
  const [first, second = ''] = words;
  if (first === 'timeout' && DURATION.test(second)) return words.slice(2);
  if (first === 'nice' && second === '-n') return words.slice(3);
  return (first === 'nohup' || first === 'time' || first === 'nice') && !second.startsWith('-')
    ? words.slice(1)
    : words;
}

/** The parts of a command and of the scripts it hands to a shell. */
function scriptParts(command: string, depth: number): readonly ShellPart[] | undefined {
  const read = parseShell(command);
  if (!read || depth > DEEPEST_SCRIPT) return undefined;
  const inner = nestedScripts(read).map((script) => scriptParts(script, depth + 1));
  if (inner.includes(undefined)) return undefined;
  return [...read.parts, ...inner.flatMap((parts) => parts ?? [])];
}

function nestedScripts({ parts, bodies }: ShellCommand): string[] {
  const calls = parts.flatMap(({ words }) => suffixes(words));
  const scripts = calls.flatMap((words) => {
    if (words[0] === 'eval') return [words.slice(1).join(' ')];
    if (!isShell(words[0])) return [];
    const flag = words.findIndex((word) => /^-\w*c\w*$/.test(word));
    return flag > 0 ? words.slice(flag + 1, flag + 2) : [];
  });
  return calls.some((words) => isShell(words[0])) ? [...scripts, ...bodies] : scripts;
}

function partSpellings(part: ShellPart): string[] {
  const calls = [...suffixes(part.words), ...executed(part.words)];
  const plain = calls.map(joined);
  return [...plain, ...calls.map(([first = '', ...rest]) => joined([baseName(first), ...rest]))];
}

/** The words themselves, and what is left when keywords and wrappers with their options are taken off the front. */
function suffixes(words: readonly string[]): (readonly string[])[] {
  const [first, ...rest] = words;
  if (first === undefined) return [];
  // `$SUDO rm x`: what the shell puts in the place of a variable may well be nothing.
  if (isKeyword(first) || /^[$`]/.test(first)) return [words, ...suffixes(rest)];
  if (!WRAPPERS.has(baseName(first))) return [words];
  return [words, ...afterOptions(rest).flatMap(suffixes)];
}

/** Where the wrapped command may start. An option may have a value or not, so both starts are tried. */
function afterOptions(words: readonly string[]): (readonly string[])[] {
  const starts: (readonly string[])[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    const isOption = word.startsWith('-') || /^\w+=/.test(word) || DURATION.test(word);
    if (!isOption) starts.push(words.slice(at));
    if (!isOption && !words[at - 1]?.startsWith('-')) break;
  }
  return starts;
}

/** `find … -exec command ;` */
function executed(words: readonly string[]): (readonly string[])[] {
  return words.flatMap((word, at) => (/^-(?:exec|execdir|ok|okdir)$/.test(word) ? [words.slice(at + 1)] : []));
}

/** Words with blanks or quotes in them keep their quotes: `'git status' x` is not `git status x`. */
function joined(words: readonly string[]): string {
  return words.map((word) => (word === '' || /[\s'"]/.test(word) ? `'${word}'` : word)).join(' ');
}

function isShell(word: string | undefined): boolean {
  return word !== undefined && SHELLS.has(baseName(word));
}

function baseName(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1);
}

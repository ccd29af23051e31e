import type { Heredoc, Reader, ShellPart } from './shell-reader.ts';
import { lookingAt, nested, newPart, newReader, take, UnreadableCommand } from './shell-reader.ts';
import { readExpansions, readWord, tookArithmetic } from './shell-words.ts';

/** Longer commands are not taken apart: no rule allows them. */
export const LONGEST_READ_COMMAND = 10_000;

const SEPARATOR = /(?:&&|\|\||;;&|;;|;&|\|&|[;|&])/y;
const REDIRECT = /(?:\d+|\{\w+\})?(?:&>>|&>|>>|>\||>&|<<<|<<-|<<|<>|<&|>|<)/y;
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/;
const KEYWORDS = new Set(
  '! { } if then else elif fi do done while until for case esac select function in coproc [[ ]]'.split(' '),
);

export interface ShellCommand {
  /** Every simple command, those in substitutions and groups included. */
  readonly parts: readonly ShellPart[];
  /** Texts of here-documents and here-strings. */
  readonly bodies: readonly string[];
}

/** Takes a command line apart; undefined if that is not possible beyond doubt. */
export function parseShell(command: string): ShellCommand | undefined {
  if (command.length > LONGEST_READ_COMMAND || command.includes('\0')) return undefined;
  const reader = newReader(command);
  try {
    readCommands(reader);
  } catch (error) {
    if (error instanceof UnreadableCommand) return undefined;
    throw error;
  }
  return { parts: reader.parts, bodies: reader.bodies };
}

/** Whether a word starts or joins commands instead of being one. */
export function isKeyword(word: string): boolean {
  return KEYWORDS.has(word);
}

/** Reads commands up to the end, or up to and with `closer`, which ends a nested list. */
export function readCommands(reader: Reader, closer?: ')'): void {
  let part = newPart(reader);
  while (!atEnd(reader, closer)) {
    if (readItem(reader, part)) continue;
    finishPart(reader, part);
    part = newPart(reader);
  }
  finishPart(reader, part);
}

function atEnd(reader: Reader, closer?: ')'): boolean {
  skipBlanks(reader);
  if (closer && take(reader, closer)) return true;
  if (reader.at < reader.text.length) return false;
  if (closer) throw new UnreadableCommand(`${closer} is missing`);
  return true;
}

/** Reads the next thing into `part`; false when it was the end of the part. */
function readItem(reader: Reader, part: ShellPart): boolean {
  if (take(reader, '\n')) {
    readHeredocs(reader);
    return false;
  }
  // A bare `)` is the end of a pattern in a `case`: what follows is a command.
  if (take(reader, ')')) return (part.plain = false);
  if (lookingAt(reader, '(')) return readGroup(reader, part);
  if (lookingAt(reader, '<(') || lookingAt(reader, '>(')) readProcess(reader, part);
  else if (!tookRedirect(reader, part)) {
    if (matchHere(reader, SEPARATOR)) return false;
    addWord(reader, part);
  }
  return true;
}

function finishPart(reader: Reader, part: ShellPart): void {
  if (part.words.length + part.assignments.length + part.redirects.length === 0) return;
  if (isKeyword(part.words[0] ?? '')) part.plain = false;
  // `case … in a) …` inside `$(…)`: its bare `)` cannot be told from the end of the substitution.
  if (reader.depth > 0 && part.words[0] === 'case') throw new UnreadableCommand('case inside a substitution');
  reader.parts.push(part);
}

/** `A='x y'` is an assignment although it has quotes; `'A'=x` is a command. */
function addWord(reader: Reader, part: ShellPart): void {
  const word = readWord(reader);
  if (!word.plain) part.plain = false;
  const name = ASSIGNMENT.exec(word.text)?.[0];
  const assigns = part.words.length === 0 && name !== undefined && name.length <= word.bareLength;
  (assigns ? part.assignments : part.words).push(word.text);
}

/** `(…)`, `((…))`, and the brackets of functions and arrays; what follows is a command of its own. */
function readGroup(reader: Reader, part: ShellPart): false {
  part.plain = false;
  if (tookArithmetic(reader)) return false;
  take(reader, '(');
  nested(reader, () => readCommands(reader, ')'));
  return false;
}

function readProcess(reader: Reader, part: ShellPart): void {
  part.plain = false;
  reader.at += 2;
  nested(reader, () => readCommands(reader, ')'));
}

function tookRedirect(reader: Reader, part: ShellPart): boolean {
  const operator = matchHere(reader, REDIRECT)?.replace(/^(?:\d+|\{\w+\})/, '');
  if (operator === undefined) return false;
  skipBlanks(reader);
  if (lookingAt(reader, '<(') || lookingAt(reader, '>(')) {
    readProcess(reader, part);
    return true;
  }
  const start = reader.at;
  const target = readWord(reader);
  if (reader.at === start) throw new UnreadableCommand(`${operator} has no target`);
  if (!target.plain || !isHarmless(operator, target.text)) part.plain = false;
  part.redirects.push({ operator, target: target.text });
  if (operator === '<<<') reader.bodies.push(target.text);
  else if (operator.startsWith('<<')) {
    reader.heredocs.push({ delimiter: target.text, literal: target.quoted, stripTabs: operator === '<<-' });
  }
  return true;
}

function isHarmless(operator: string, target: string): boolean {
  if (operator === '>&' || operator === '<&') return /^(?:\d+|-)$/.test(target);
  return !operator.startsWith('<<') && target === '/dev/null';
}

/** Their text starts after the line that announced them. A missing end means: up to the end. */
function readHeredocs(reader: Reader): void {
  for (const heredoc of reader.heredocs.splice(0)) {
    const body = takeHeredoc(reader, heredoc);
    reader.bodies.push(body);
    if (!heredoc.literal) readExpansions(reader, body);
  }
}

function takeHeredoc(reader: Reader, { delimiter, stripTabs }: Heredoc): string {
  const lines: string[] = [];
  while (reader.at < reader.text.length) {
    const end = reader.text.indexOf('\n', reader.at);
    const line = reader.text.slice(reader.at, end < 0 ? undefined : end);
    reader.at = end < 0 ? reader.text.length : end + 1;
    if ((stripTabs ? line.replace(/^\t+/, '') : line) === delimiter) break;
    lines.push(line);
  }
  return lines.join('\n');
}

/** Comments count as blank. */
function skipBlanks(reader: Reader): void {
  matchHere(reader, /(?:[ \t]|\\\n)*/y);
  if (lookingAt(reader, '#')) matchHere(reader, /[^\n]*/y);
}

function matchHere(reader: Reader, pattern: RegExp): string | undefined {
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.text)?.[0];
  if (found === undefined) return undefined;
  reader.at += found.length;
  return found;
}

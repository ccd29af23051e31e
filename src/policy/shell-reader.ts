/** A command that cannot be taken apart; nothing may rely on what was read of it. */
export class UnreadableCommand extends Error {
  override readonly name = 'UnreadableCommand';
}

export interface Redirect {
  readonly operator: string;
  readonly target: string;
}

/** One simple command of a command line. */
export interface ShellPart {
  /** Words as the shell would pass them on; what only the shell can know is kept as written (`$HOME`). */
  readonly words: string[];
  /** Leading `NAME=value` words. */
  readonly assignments: string[];
  readonly redirects: Redirect[];
  /** False as soon as anything in it is more than plain words: substitutions, redirects, grouping, keywords. */
  plain: boolean;
}

export interface Word {
  readonly text: string;
  readonly plain: boolean;
  readonly quoted: boolean;
  /** How many characters came before the first quote. */
  readonly bareLength: number;
}

export interface Heredoc {
  readonly delimiter: string;
  readonly literal: boolean;
  readonly stripTabs: boolean;
}

/** Where reading has got to, and what was found on the way. Nested commands add to the same `parts`. */
export interface Reader {
  readonly text: string;
  at: number;
  /** 0 at the top; above it everything is inside a substitution or a group. */
  depth: number;
  readonly parts: ShellPart[];
  /** Announced with `<<`, their text not reached yet. */
  readonly heredocs: Heredoc[];
  /** Texts of here-documents and here-strings. */
  readonly bodies: string[];
}

export function newReader(text: string, depth = 0): Reader {
  return { text, at: 0, depth, parts: [], heredocs: [], bodies: [] };
}

export function newPart(reader: Reader): ShellPart {
  return { words: [], assignments: [], redirects: [], plain: reader.depth === 0 };
}

const DEEPEST_NESTING = 50;

/** Reads something that may hold commands again; a limit keeps hostile input from exhausting the stack. */
export function nested(reader: Reader, read: () => void): void {
  reader.depth++;
  if (reader.depth > DEEPEST_NESTING) throw new UnreadableCommand('nested too deep');
  read();
  reader.depth--;
}

export function lookingAt(reader: Reader, text: string): boolean {
  return reader.text.startsWith(text, reader.at);
}

/** Takes `text` if it comes next. */
export function take(reader: Reader, text: string): boolean {
  if (!lookingAt(reader, text)) return false;
  reader.at += text.length;
  return true;
}

/** Takes all up to and with `end`. */
export function takeThrough(reader: Reader, end: string): string {
  const stop = reader.text.indexOf(end, reader.at);
  if (stop < 0) throw new UnreadableCommand(`${end} is missing`);
  const taken = reader.text.slice(reader.at, stop);
  reader.at = stop + end.length;
  return taken;
}

/** The next character, which is passed. */
export function takeChar(reader: Reader): string {
  const char = reader.text[reader.at];
  if (char === undefined) throw new UnreadableCommand('the command ends too early');
  reader.at++;
  return char;
}

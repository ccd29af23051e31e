import { readCommands } from './shell.ts';
import type { Reader, Word } from './shell-reader.ts';
import { lookingAt, nested, newReader, take, takeChar, takeThrough, UnreadableCommand } from './shell-reader.ts';

const WORD_END = new Set([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>']);

interface Growing {
  text: string;
  plain: boolean;
  quoted: boolean;
  bareLength: number;
}

/** Reads one word with quotes taken off. Commands inside substitutions go to the reader's parts. */
export function readWord(reader: Reader): Word {
  const word: Growing = { text: '', plain: true, quoted: false, bareLength: 0 };
  for (let char = reader.text[reader.at]; char !== undefined && !WORD_END.has(char); char = reader.text[reader.at]) {
    readPiece(reader, word);
    if (!word.quoted) word.bareLength = word.text.length;
  }
  return word;
}

/** Finds the substitutions in text that the shell expands but does not run: here-documents. */
export function readExpansions(reader: Reader, body: string): void {
  const inner: Reader = { ...reader, text: body, at: 0, heredocs: [] };
  while (inner.at < body.length) readQuotedPiece(inner, quotedWord());
}

/**
 * `((…))` from its start. Nested groups that merely look like it end as unreadable: trying both readings would cost
 * twice as much on every level.
 */
export function tookArithmetic(reader: Reader): boolean {
  if (!take(reader, '((')) return false;
  const word = quotedWord();
  for (let open = 2; ;) {
    if (open === 2 && take(reader, '))')) return true;
    if (open === 2 && lookingAt(reader, ')')) throw new UnreadableCommand('"((" without "))"');
    if (take(reader, '(')) open++;
    else if (take(reader, ')')) open--;
    else readQuotedPiece(reader, word);
  }
}

function quotedWord(): Growing {
  return { text: '', plain: false, quoted: true, bareLength: 0 };
}

function readPiece(reader: Reader, word: Growing): void {
  if (take(reader, '\\\n')) return;
  if (take(reader, '\\')) {
    word.quoted = true;
    word.text += takeChar(reader);
  } else if (take(reader, "'")) {
    word.quoted = true;
    word.text += takeThrough(reader, "'");
  } else if (take(reader, '"')) {
    readDoubleQuotes(reader, word);
  } else if (take(reader, "$'")) {
    word.quoted = true;
    word.plain = false;
    word.text += unescapeAnsi(takeAnsiQuote(reader));
  } else if (take(reader, '$"')) {
    word.plain = false;
    readDoubleQuotes(reader, word);
  } else if (lookingAt(reader, '$') || lookingAt(reader, '`')) {
    readExpansion(reader, word, false);
  } else {
    const char = takeChar(reader);
    if (char === '{' || char === '}') word.plain = false;
    word.text += char;
  }
}

function readDoubleQuotes(reader: Reader, word: Growing): void {
  word.quoted = true;
  while (!take(reader, '"')) readQuotedPiece(reader, word);
}

function readQuotedPiece(reader: Reader, word: Growing): void {
  if (take(reader, '\\\n')) return;
  if (lookingAt(reader, '$') || lookingAt(reader, '`')) return readExpansion(reader, word, true);
  const char = takeChar(reader);
  const next = reader.text[reader.at];
  word.text += char === '\\' && next !== undefined && '$`"\\'.includes(next) ? takeChar(reader) : char;
}

function readExpansion(reader: Reader, word: Growing, inQuotes: boolean): void {
  const start = reader.at;
  if (take(reader, '`')) readBackticks(reader);
  else if (take(reader, '$(')) readSubstitution(reader);
  else if (take(reader, '${')) readBraces(reader, inQuotes);
  else {
    takeChar(reader);
    if (!/[\w@*#?$!-]/.test(reader.text[reader.at] ?? '')) {
      word.text += '$';
      return;
    }
  }
  word.plain = false;
  word.text += reader.text.slice(start, reader.at);
}

function readSubstitution(reader: Reader): void {
  reader.at--;
  if (tookArithmetic(reader)) return;
  reader.at++;
  nested(reader, () => readCommands(reader, ')'));
}

/** Inside backticks a backslash protects only a backtick, a dollar sign and itself. */
function readBackticks(reader: Reader): void {
  let script = '';
  while (!take(reader, '`')) {
    const char = takeChar(reader);
    const next = reader.text[reader.at];
    script += char === '\\' && next !== undefined && '`$\\'.includes(next) ? takeChar(reader) : char;
  }
  const inner = newReader(script, reader.depth + 1);
  readCommands(inner);
  reader.parts.push(...inner.parts);
  reader.bodies.push(...inner.bodies);
}

/** `${…}`; a single quote means nothing in it when it stands between double quotes. */
function readBraces(reader: Reader, quoted: boolean): void {
  const word: Growing = { text: '', plain: false, quoted, bareLength: 0 };
  nested(reader, () => {
    while (!take(reader, '}')) {
      if (quoted && take(reader, '"')) readDoubleQuotes(reader, word);
      else if (quoted) readQuotedPiece(reader, word);
      else readPiece(reader, word);
    }
  });
}

function takeAnsiQuote(reader: Reader): string {
  let text = '';
  while (!take(reader, "'")) {
    const char = takeChar(reader);
    text += char === '\\' ? char + takeChar(reader) : char;
  }
  return text;
}

const ANSI_ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', e: '\x1b' };

function unescapeAnsi(text: string): string {
  return text.replace(
    /\\(?:x([\da-f]{1,2})|u([\da-f]{1,4})|([0-7]{1,3})|([^]))/gi,
    (_, ...found: (string | undefined)[]) => {
      const [byte, unit, octal, char = ''] = found;
      const hex = byte ?? unit;
      if (hex) return String.fromCharCode(Number.parseInt(hex, 16));
      if (octal) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
      return ANSI_ESCAPES[char] ?? char;
    },
  );
}

/**
 * Text of a model or a file as a terminal may show it: no escape sequence, no control character and no character that
 * turns the writing direction around, so that nobody's output can draw over ours.
 */
export function printable(text: string): string {
  return text.replace(ESCAPE_SEQUENCES, '').replace(/\r\n?/g, '\n').replace(CONTROLS, '\uFFFD');
}

/** The same on one line, cut to so many characters. */
export function oneLine(text: string, maxLength = 160): string {
  return cutTo(printable(text).replace(/\s+/g, ' ').trim(), maxLength);
}

/** Cut by whole code points, with an ellipsis. */
export function cutTo(text: string, maxLength: number): string {
  const points = [...text];
  return points.length <= maxLength ? text : `${points.slice(0, Math.max(0, maxLength - 1)).join('')}…`;
}

/** Columns the text takes in a terminal; wide characters take two. */
export function displayWidth(text: string): number {
  return [...text].reduce((width, point) => width + pointWidth(point), 0);
}

/** Cut to so many columns, with an ellipsis. */
export function cutToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let width = 0;
  let kept = '';
  for (const point of text) {
    width += pointWidth(point);
    if (width > columns - 1) break;
    kept += point;
  }
  return `${kept}…`;
}

/** In lines of at most so many columns, broken between words; a longer word is cut. */
export function wrapToWidth(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && displayWidth(longer) > columns) lines.push(word);
    else lines[Math.max(0, lines.length - 1)] = longer;
  }
  return lines.map((line) => cutToWidth(line, columns));
}

const ESCAPE_SEQUENCES =
  /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[PX^_][^\u001B]*\u001B\\|[ -/]*[0-~])/g;
const CONTROLS = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

function pointWidth(point: string): number {
  if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(point)) return 0;
  return WIDE.test(point) ? 2 : 1;
}

const WIDE =
  /^[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]$/u;

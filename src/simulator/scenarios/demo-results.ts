import { UnexpectedResult } from '../scenario.ts';
import type { CallResult } from '../scenario.ts';
import { exitCodeOf } from '../script.ts';

/** The path of a file as a tool printed it, absolute or not: what the other tools then take. */
export function pathIn(results: readonly CallResult[], file: string): string {
  const escaped = file.replaceAll('.', '\\.');
  const pattern = new RegExp(`(?:^|[\\s"'(])((?:[^\\s"'(:]*/)?${escaped})(?=[\\s"'):,]|$)`, 'm');
  for (const { text, isError } of results) {
    const path = isError ? undefined : pattern.exec(text)?.[1];
    if (path !== undefined) return path;
  }
  throw new UnexpectedResult(`${file} to be listed`, describe(results));
}

/** The number of the line that contains `code`, in a read result (`     7\tcode`) or a grep result (`file:7:code`). */
export function lineOf(results: readonly CallResult[], code: string): number {
  for (const { text } of results) {
    const line = text.split('\n').find((one) => one.includes(code));
    const number = line === undefined ? undefined : /^\s*(\d+)(?=\t|→|:|\s)|:(\d+):/.exec(line);
    if (number) return Number(number[1] ?? number[2]);
  }
  throw new UnexpectedResult(`a numbered line with ${code}`, describe(results));
}

/** The one result of a tool among these, which must not be an error. */
export function goodResult(results: readonly CallResult[], tool: string): CallResult {
  const result = results.find((one) => one.name === tool);
  if (result && !result.isError) return result;
  throw new UnexpectedResult(`a result of ${tool} without an error`, describe(results));
}

/** Whether the tests passed; undefined where no sandbox lets the shell run, or where the command was interrupted. */
export function testsPassed(results: readonly CallResult[]): boolean | undefined {
  const result = results.find((one) => one.name === 'bash');
  if (!result) throw new UnexpectedResult('a result of bash', describe(results));
  const code = exitCodeOf(result.text);
  if (code !== undefined) return code === 0;
  if (result.isError && /sandbox|bubblewrap|bwrap|interrupted/i.test(result.text)) return undefined;
  throw new UnexpectedResult('an exit code in the result of bash', describe(results));
}

function describe(results: readonly CallResult[]): string {
  if (results.length === 0) return 'no results came';
  const shown = results.map(({ name, text, isError }) => `${name}${isError ? ' (error)' : ''} "${text.slice(0, 300)}"`);
  return `the results were ${shown.join('; ')}`;
}

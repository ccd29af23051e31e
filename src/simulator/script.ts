import { UnexpectedResult } from './scenario.ts';
import type { Call, CallResult, Play, Step, View } from './scenario.ts';
import { toBase64, toMarker } from './marker.ts';
import type { MarkerArgs } from './marker.ts';

/** What a result must be. All given fields must hold; text is compared leniently, meaning strictly. */
export interface Expectation {
  /** Name of the tool that was called. */
  readonly tool?: string;
  readonly isError?: boolean;
  /** Text that must be in the result. */
  readonly includes?: string;
  readonly excludes?: string;
  /** A regular expression, or its source. */
  readonly matches?: RegExp | string;
  /** The `exit code: N` of a bash result. */
  readonly exitCode?: number;
}

/** A step, or a step that looks at the conversation first. */
export type ScriptStep = Step | Play;

/** Steps in order, one a turn. A request past the end fails loudly unless `after` says what to answer. */
export function script(steps: readonly ScriptStep[], after?: ScriptStep): Play {
  return (view) => {
    const step = steps[view.turn - 1] ?? after;
    if (step === undefined)
      throw new UnexpectedResult(`at most ${steps.length} turns`, `turn ${view.turn} was asked for`);
    return playStep(step, view);
  };
}

export function say(text: string, more: Omit<Step, 'text'> = {}): Step {
  return { ...more, text };
}

export function call(name: string, input: unknown, more: Omit<Step, 'calls'> = {}): Step {
  return { ...more, calls: [{ name, input }] };
}

/** Several calls in one turn, with a sentence before them. */
export function calls(text: string, list: readonly Call[], more: Omit<Step, 'text' | 'calls'> = {}): Step {
  return { ...more, text, calls: list };
}

/** Goes on with `step` only if the last results are as expected: one expectation for all, or a list, one each. */
export function expectResult(expected: Expectation | readonly Expectation[], step: ScriptStep): Play {
  return (view) => {
    checkResults(expected, view.lastResults);
    return playStep(step, view);
  };
}

export function checkResults(expected: Expectation | readonly Expectation[], results: readonly CallResult[]): void {
  if (!isList(expected)) {
    if (results.length === 0) throw new UnexpectedResult('at least one result', 'none came');
    for (const result of results) checkResult(expected, result);
    return;
  }
  if (results.length !== expected.length) {
    throw new UnexpectedResult(`${expected.length} results`, `${results.length} came: ${describeAll(results)}`);
  }
  expected.forEach((one, index) => {
    const result = results[index];
    if (result) checkResult(one, result);
  });
}

/** The number in a bash result's `exit code: N`, if there is one. */
export function exitCodeOf(text: string): number | undefined {
  const found = [...text.matchAll(/exit code:?\s*(-?\d+)/gi)].at(-1)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** A prompt that plays these steps inline, by the `script` scenario. Regular expressions become their source. */
export function toScriptPrompt(steps: readonly InlineStep[], words = '', args: MarkerArgs = {}): string {
  const json = JSON.stringify(steps, (_key, value: unknown) => (value instanceof RegExp ? value.source : value));
  return `${words} ${toMarker('script', { ...args, steps: toBase64(json) })}`.trim();
}

/** A step as data: what the last results must be, and how many turns to play it. */
export interface InlineStep extends Step {
  readonly expect?: Expectation | readonly Expectation[];
  readonly repeat?: number;
}

function playStep(step: ScriptStep, view: View): Step {
  return typeof step === 'function' ? step(view) : step;
}

function isList(expected: Expectation | readonly Expectation[]): expected is readonly Expectation[] {
  return Array.isArray(expected);
}

function checkResult(expected: Expectation, result: CallResult): void {
  const problem = resultProblem(expected, result);
  if (problem !== undefined) throw new UnexpectedResult(problem, `${result.name} gave ${describe(result)}`);
}

function resultProblem(expected: Expectation, { name, text, isError }: CallResult): string | undefined {
  if (expected.tool !== undefined && expected.tool !== name) return `a result of ${expected.tool}`;
  if (expected.isError !== undefined && expected.isError !== isError) return expected.isError ? 'an error' : 'no error';
  if (expected.includes !== undefined && !text.includes(expected.includes))
    return `"${expected.includes}" in the result`;
  if (expected.excludes !== undefined && text.includes(expected.excludes))
    return `no "${expected.excludes}" in the result`;
  if (expected.matches !== undefined && !new RegExp(expected.matches).test(text))
    return `a match of ${expected.matches}`;
  if (expected.exitCode !== undefined && exitCodeOf(text) !== expected.exitCode)
    return `exit code: ${expected.exitCode}`;
  return undefined;
}

function describe({ text, isError }: CallResult): string {
  const shown = text.length > 400 ? `${text.slice(0, 200)} … ${text.slice(-200)}` : text;
  return `${isError ? 'the error ' : ''}"${shown}"`;
}

function describeAll(results: readonly CallResult[]): string {
  return results.map((result) => `${result.name} ${describe(result)}`).join('; ');
}

import { isObject } from './json.ts';
import type { Play, Step, View } from './scenario.ts';
import { UnexpectedResult } from './scenario.ts';
import { expectResult, script } from './script.ts';
import type { Expectation, InlineStep, ScriptStep } from './script.ts';

const FIELDS = new Set([
  'expect',
  'repeat',
  'thinking',
  'redacted',
  'text',
  'calls',
  'blocks',
  'stopReason',
  'stopSequence',
  'usage',
  'fault',
]);

/**
 * Steps given as data. In any string of a step, `{{turn}}` is the turn, `{{result:N}}` the text of the N-th last
 * result (from 0), and `{{match:REGEX}}` the first group of the first match in the last results.
 */
export function toInlineScript(steps: unknown): Play {
  if (!Array.isArray(steps) || steps.length === 0)
    throw new Error('the steps must be a JSON list with at least one step');
  return script(steps.flatMap((step, index) => repeated(toInlineStep(step, index))));
}

function toInlineStep(step: unknown, index: number): InlineStep {
  const problem = inlineStepProblem(step);
  if (problem !== undefined) throw new Error(`step ${index} ${problem}`);
  return step as InlineStep;
}

function inlineStepProblem(step: unknown): string | undefined {
  if (!isObject(step)) return 'must be an object';
  const unknown = Object.keys(step).find((key) => !FIELDS.has(key));
  if (unknown !== undefined) return `has the unknown field "${unknown}"; known are ${[...FIELDS].join(', ')}`;
  const isCall = (call: unknown): boolean => isObject(call) && typeof call.name === 'string';
  const { calls } = step;
  return calls === undefined || (Array.isArray(calls) && calls.every(isCall))
    ? undefined
    : 'has calls that are not a list of {name, input}';
}

function repeated({ expect, repeat = 1, ...step }: InlineStep): ScriptStep[] {
  return Array.from({ length: repeat }, () => toPlay(step, expect));
}

function toPlay(step: Step, expect: Expectation | readonly Expectation[] | undefined): ScriptStep {
  const fill: Play = (view) => filled(step, view) as Step;
  return expect === undefined ? fill : expectResult(expect, fill);
}

function filled(value: unknown, view: View): unknown {
  if (typeof value === 'string') return value.includes('{{') ? fillText(value, view) : value;
  if (Array.isArray(value)) return value.map((item) => filled(item, view));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, view)]));
}

function fillText(text: string, view: View): string {
  return text
    .replaceAll('{{turn}}', String(view.turn))
    .replace(/\{\{result:(\d+)\}\}/g, (_all, index: string) => view.lastResults[Number(index)]?.text ?? '')
    .replace(/\{\{match:(.+?)\}\}/g, (_all, pattern: string) => firstMatch(pattern, view));
}

function firstMatch(pattern: string, { lastResults }: View): string {
  const texts = lastResults.map((result) => result.text).join('\n');
  const found = new RegExp(pattern).exec(texts);
  if (!found) throw new UnexpectedResult(`a match of ${pattern}`, `the results were "${texts.slice(0, 400)}"`);
  return found[1] ?? found[0];
}

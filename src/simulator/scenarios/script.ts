import { toInlineScript } from '../inline-script.ts';
import { fromBase64 } from '../marker.ts';
import type { Play, Scenario } from '../scenario.ts';
import { UnexpectedResult } from '../scenario.ts';

export const inlineScript: Scenario = {
  name: 'script',
  description: 'plays steps written into the prompt',
  args: {
    steps: 'base64 of a JSON list of steps: {text?, thinking?, calls?: [{name, input}], expect?, fault?, repeat?, …}',
    end: '"repeat": the last step is played for ever (by default a request past the last step is an error)',
  },
  play: (view) => {
    const steps = readSteps(view.args.steps ?? '');
    const last = view.args.end === 'repeat' ? Math.min(view.turn, countSteps(steps)) : view.turn;
    return toScript(steps)({ ...view, turn: last });
  },
};

function readSteps(encoded: string): unknown {
  try {
    return JSON.parse(fromBase64(encoded)) as unknown;
  } catch (error) {
    throw new UnexpectedResult('steps to be base64 of a JSON list', `it cannot be read: ${String(error)}`);
  }
}

function toScript(steps: unknown): Play {
  try {
    return toInlineScript(steps);
  } catch (error) {
    throw new UnexpectedResult('a list of steps', error instanceof Error ? error.message : String(error));
  }
}

function countSteps(steps: unknown): number {
  const list = Array.isArray(steps) ? (steps as { repeat?: number }[]) : [];
  return list.reduce((sum, step) => sum + (step.repeat ?? 1), 0);
}

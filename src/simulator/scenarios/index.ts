import type { Scenario } from '../scenario.ts';
import { badInput } from './bad-input.ts';
import { bash } from './bash.ts';
import { demoCause } from './demo-cause.ts';
import { demoCheck } from './demo-check.ts';
import { demo } from './demo.ts';
import { echo } from './echo.ts';
import { edit } from './edit.ts';
import { fault } from './fault.ts';
import { hello } from './hello.ts';
import { repeat } from './repeat.ts';
import { runaway } from './runaway.ts';
import { inlineScript } from './script.ts';
import { slow } from './slow.ts';
import { stopReason } from './stop-reason.ts';
import { thinking } from './thinking.ts';
import { toolLoop } from './tool-loop.ts';
import { tree } from './tree.ts';

export const builtInScenarios: readonly Scenario[] = [
  demo,
  demoCause,
  demoCheck,
  echo,
  hello,
  toolLoop,
  tree,
  inlineScript,
  bash,
  edit,
  thinking,
  slow,
  fault,
  stopReason,
  badInput,
  repeat,
  runaway,
];

export interface ScenarioDescription {
  readonly name: string;
  readonly description: string;
  readonly args: Readonly<Record<string, string>>;
}

/** The built-in scenarios and their arguments, for a listing. */
export function describeScenarios(): ScenarioDescription[] {
  return builtInScenarios.map(({ name, description, args = {} }) => ({ name, description, args }));
}

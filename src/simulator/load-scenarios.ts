import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isObject } from './json.ts';
import { toInlineScript } from './inline-script.ts';
import type { Play, Scenario } from './scenario.ts';
import { builtInScenarios } from './scenarios/index.ts';

export type ExtraScenarios = string | ReadonlyMap<string, Play | Scenario> | Readonly<Record<string, Play | Scenario>>;

/** Built-in scenarios and extra ones: given as functions, or a folder of JSON files. Extra ones win. */
export function loadScenarios(extra: ExtraScenarios = {}): Map<string, Scenario> {
  const all = new Map(builtInScenarios.map((scenario) => [scenario.name, scenario]));
  for (const scenario of readExtra(extra)) all.set(scenario.name, scenario);
  return all;
}

function readExtra(extra: ExtraScenarios): Scenario[] {
  if (typeof extra === 'string') return readFolder(extra);
  const entries: [string, Play | Scenario][] = isMap(extra) ? [...extra] : Object.entries(extra);
  return entries.map(([name, one]) =>
    typeof one === 'function' ? { name, description: name, play: one } : { ...one, name },
  );
}

function isMap(extra: object): extra is ReadonlyMap<string, Play | Scenario> {
  return extra instanceof Map;
}

function readFolder(folder: string): Scenario[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => readScenarioFile(join(folder, file)));
}

/** A file holds a list of steps, or `{description, steps}`; its name is the scenario's. */
function readScenarioFile(path: string): Scenario {
  const name = basename(path, '.json');
  try {
    const json = JSON.parse(readFileSync(path, 'utf8')) as unknown;
    const steps = isObject(json) ? json.steps : json;
    const description = isObject(json) && typeof json.description === 'string' ? json.description : name;
    return { name, description, play: toInlineScript(steps) };
  } catch (error) {
    throw new Error(`Scenario file ${path} cannot be used: ${String(error)}. It must be a JSON list of steps.`, {
      cause: error,
    });
  }
}

import { toMarker } from '../marker.ts';
import { UnexpectedResult } from '../scenario.ts';
import type { Call, Scenario, Step, View } from '../scenario.ts';

/** The numbers that describe a tree, carried from parent to child in the marker. */
interface Place {
  readonly width: number;
  readonly depth: number;
  readonly branches: number;
  readonly level: number;
  readonly path: string;
  readonly name: string;
}

export const tree: Scenario = {
  name: 'tree',
  description: 'a root with children and grandchildren; each reads a file and reports',
  args: {
    width: 'how many children the root has (3)',
    depth: 'how many levels there are below the root (2)',
    branches: 'how many of the children have a child of their own (2)',
    path: 'the file each agent reads; "none" reads nothing (README.md)',
    delay: 'ms before each answer, in every agent (0)',
  },
  play: (view) => {
    const place = readPlace(view);
    const steps = [
      ...(place.path === 'none' ? [] : [readStep(place)]),
      ...(childNames(place).length === 0 ? [] : [spawnStep(place, view)]),
    ];
    return steps[view.turn - 1] ?? report(place, view);
  },
};

function readPlace({ args }: View): Place {
  return {
    width: Number(args.width ?? 3),
    depth: Number(args.depth ?? 2),
    branches: Number(args.branches ?? 2),
    level: Number(args.level ?? 0),
    path: args.path ?? 'README.md',
    name: args.name ?? 'root',
  };
}

function readStep({ name, path }: Place): Step {
  return { text: `I am ${name}. I read ${path} first.`, calls: [{ name: 'read', input: { file_path: path } }] };
}

function spawnStep(place: Place, view: View): Step {
  return { text: 'I hand out the parts.', calls: childNames(place).map((name) => toTask(name, place, view)) };
}

function childNames({ width, depth, branches, level, name }: Place): string[] {
  if (level >= depth) return [];
  if (level === 0) return Array.from({ length: width }, (_, index) => `child-${index + 1}`);
  const index = Number(name.split('-')[1]?.split('.')[0]);
  return level > 0 && index <= branches ? [`${name}.1`] : [];
}

function toTask(name: string, place: Place, { args }: View): Call {
  const { width, depth, branches, level, path } = place;
  const marker = toMarker('tree', { width, depth, branches, path, delay: args.delay, level: level + 1, name });
  return { name: 'task', input: { description: `look after part ${name}`, prompt: `You are ${name}. ${marker}` } };
}

function report({ name }: Place, { results }: View): Step {
  const failed = results.find((result) => result.isError);
  if (failed) throw new UnexpectedResult('no error', `${failed.name} gave the error "${failed.text.slice(0, 400)}"`);
  const children = results.filter((result) => result.name === 'task').map((result) => result.text);
  return { text: [`${name} is done.`, ...children].join('\n') };
}

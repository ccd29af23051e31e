import { existsSync, readFileSync } from 'node:fs';
import type { Agent } from './agents.ts';
import { FLOOD_OUTPUT, MARKS, START_FILES } from './job.ts';
import { filesIn } from './run.ts';
import type { JobRun } from './run.ts';
import { doubled, lost, untrue } from './violation.ts';
import type { Violation } from './violation.ts';

export interface EffectsInput {
  readonly run: JobRun;
  readonly agents: readonly Agent[];
  readonly isCancelled: boolean;
  /** Files of an undisturbed job; undefined: this is the undisturbed one. */
  readonly expected?: Readonly<Record<string, string>>;
}

/** Promises 1 and 2: each effect happened once, or where the job was cancelled at most once, and nothing else did. */
export function effectProblems(input: EffectsInput): Violation[] {
  const files = filesIn(input.run.workspace);
  return [...markProblems(input, files), ...fileProblems(input, files), ...input.agents.flatMap(storedProblems)];
}

function markProblems({ agents, isCancelled }: EffectsInput, files: Readonly<Record<string, string>>): Violation[] {
  return MARKS.flatMap(({ file, line }) => {
    const count = (files[file] ?? '').split('\n').filter((one) => one === line).length;
    if (count > 1) return [doubled(`effect ${line} happened ${count} times`)];
    const isWanted = !isCancelled || agents.some((agent) => isToldDone(agent, line));
    return count === 0 && isWanted ? [lost(`effect ${line} is missing`)] : [];
  });
}

/** Whether the agent was told that its command for this line came to its end. */
function isToldDone({ records }: Agent, line: string): boolean {
  const blocks = records.flatMap((record) => (record.type === 'message' ? record.content : []));
  const uses = blocks.filter(
    (block) => block.type === 'tool_use' && JSON.stringify(block.input).includes(`echo ${line} >>`),
  );
  return uses.some(({ id }) =>
    blocks.some((block) => block.type === 'tool_result' && block.tool_use_id === id && block.is_error !== true),
  );
}

function fileProblems({ expected, isCancelled }: EffectsInput, files: Readonly<Record<string, string>>): Violation[] {
  if (expected === undefined) return [];
  const names = [...new Set([...Object.keys(files), ...Object.keys(isCancelled ? {} : expected)])];
  const isRight = isCancelled ? isOnItsWay : isThere;
  const wrong = names.filter((name) => !isRight(name, files[name] ?? '', expected));
  return wrong.map((name) => lost(`${name} is ${JSON.stringify(files[name])?.slice(0, 200)}`));
}

function isThere(name: string, content: string, expected: Readonly<Record<string, string>>): boolean {
  return expected[name] === content;
}

/** Between the start and the end of an undisturbed job: a file of it, whose every line is from before or after. */
function isOnItsWay(name: string, content: string, expected: Readonly<Record<string, string>>): boolean {
  const known = new Set([START_FILES[name] ?? '', expected[name] ?? ''].flatMap((text) => text.split('\n')));
  return name in expected && content.split('\n').every((line) => known.has(line));
}

/** Output too long for the model is whole in its file. */
function storedProblems({ role, records, meta }: Agent): Violation[] {
  const results = records.flatMap((record) =>
    record.type === 'message' && record.role === 'user' ? (record.results ?? []) : [],
  );
  const stored = results.filter(({ isError }) => !isError).flatMap(({ facts }) => facts?.spilledTo ?? []);
  const broken = stored.filter((file) => !existsSync(file) || readFileSync(file, 'utf8') !== FLOOD_OUTPUT);
  const isMissing = role === 'leaf' && meta.status === 'completed' && stored.length === 0;
  return [
    ...broken.map((file) => lost(`the whole output of a command of ${role} is not in ${file}`)),
    ...(isMissing ? [untrue(`the long output of ${role} was stored nowhere`)] : []),
  ];
}

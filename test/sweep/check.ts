import { usageOf } from '../../src/store/usage.ts';
import { readAgents } from './agents.ts';
import type { Agent } from './agents.ts';
import { requestProblems } from './check-requests.ts';
import { LAST_WORDS, MARKS } from './job.ts';
import { leftovers } from './leftovers.ts';
import { describe, filesIn } from './run.ts';
import type { JobRun } from './run.ts';
import { doubled, lost, untrue } from './violation.ts';
import type { Done, Violation } from './violation.ts';
import type { World } from './world.ts';

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly unknownTold: number;
  readonly unsettled: number;
}

export interface CheckInput {
  readonly world: World;
  readonly run: JobRun;
  readonly kills: readonly Done[];
  /** Files of an undisturbed job; undefined: this is the undisturbed one. */
  readonly expected?: Readonly<Record<string, string>>;
}

/** Everything that must be true of a run that has ended. */
export async function checkRun(input: CheckInput): Promise<Verdict> {
  const { world, run } = input;
  const kills = input.kills.filter(({ untilMs }) => untilMs >= run.startedMs);
  const agents = await readAgents(world, run);
  const told = agents.flatMap(unknownTold);
  const violations = [
    ...(await endingProblems(input, agents)),
    ...effectProblems(input),
    ...agents.flatMap((agent) => requestProblems(agent, kills)),
    ...(await leftovers(world, run, agents)),
    ...(told.length > 0 && !kills.some(({ hitsCommands }) => hitsCommands)
      ? [untrue(`an unknown effect was told though no command was hit: ${told.join(', ')}`)]
      : []),
  ];
  const unsettled = agents.reduce((sum, { records }) => sum + usageOf(records).unsettled.length, 0);
  return { violations, unknownTold: told.length, unsettled };
}

async function endingProblems({ world, run }: CheckInput, agents: readonly Agent[]): Promise<Violation[]> {
  const problems: Violation[] = [];
  const roles = agents.map(({ role }) => role).toSorted();
  if (roles.join() !== 'below,leaf,middle,root') problems.push(lost(`the agents are ${roles.join(', ')}`));
  for (const { meta, role, records } of agents) {
    const ends = records.filter((record) => record.type === 'end');
    const [end] = ends;
    if (ends.length !== 1) problems.push(lost(`${role} has ${ends.length} terminal records`));
    if (end?.status !== 'completed') problems.push(lost(`${role} ended ${end?.status}: ${end?.error}`));
    if (meta.status !== end?.status)
      problems.push(untrue(`meta of ${role} says ${meta.status}, its transcript ${end?.status}`));
    const status = await describe(world, meta.workflowId);
    if (status !== 'COMPLETED') problems.push(lost(`the workflow of ${role} is ${status}`));
  }
  const root = agents.find(({ role }) => role === 'root');
  const last = root?.records.findLast((record) => record.type === 'message');
  if (!JSON.stringify(last ?? '').includes(LAST_WORDS))
    problems.push(lost(`the last words of ${run.runId} are missing`));
  return problems;
}

function effectProblems({ run, expected }: CheckInput): Violation[] {
  const files = filesIn(run.workspace);
  const marks = MARKS.flatMap(({ file, line }) => {
    const count = (files[file] ?? '').split('\n').filter((one) => one === line).length;
    if (count === 1) return [];
    return [count === 0 ? lost(`effect ${line} is missing`) : doubled(`effect ${line} happened ${count} times`)];
  });
  if (expected === undefined) return marks;
  const names = [...new Set([...Object.keys(files), ...Object.keys(expected)])];
  const differing = names.filter((name) => files[name] !== expected[name]);
  return [...marks, ...differing.map((name) => lost(`${name} is ${JSON.stringify(files[name])?.slice(0, 200)}`))];
}

function unknownTold({ role, records }: Agent): string[] {
  return records.flatMap((record) => {
    if (record.type !== 'message' || record.role !== 'user') return [];
    const told = record.content.filter(
      (block) => block.is_error === true && String(block.content).includes('effects unknown'),
    );
    return told.map(() => `${role}, turn ${record.turn}`);
  });
}

import { usageOf } from '../../src/store/usage.ts';
import { readAgents } from './agents.ts';
import type { Agent } from './agents.ts';
import { effectProblems } from './check-effects.ts';
import { endingProblems } from './check-ending.ts';
import { requestProblems } from './check-requests.ts';
import { leftovers } from './leftovers.ts';
import type { Doings } from './people.ts';
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
  /** Undefined: nobody spoke to it. */
  readonly doings?: Doings;
  /** Files of an undisturbed job; undefined: this is the undisturbed one. */
  readonly expected?: Readonly<Record<string, string>>;
}

/** Everything that must be true of a run that has ended. */
export async function checkRun(input: CheckInput): Promise<Verdict> {
  const { world, run, doings, expected } = input;
  const { cancelledMs } = doings ?? {};
  const kills = input.kills.filter(({ untilMs }) => untilMs >= run.startedMs);
  const agents = await readAgents(world, run);
  const told = agents.flatMap(unknownTold);
  const violations = [
    ...(await endingProblems({ world, run, agents, kills, cancelledMs })),
    ...effectProblems({ run, agents, isCancelled: cancelledMs !== undefined, expected }),
    ...agents.flatMap((agent) => requestProblems(agent, [...kills, ...toStop(cancelledMs)])),
    ...(doings ? messageProblems(doings, agents) : []),
    ...(await leftovers(world, run, agents)),
    ...(told.length > 0 && !kills.some(({ hitsCommands }) => hitsCommands)
      ? [untrue(`an unknown effect was told though no command was hit: ${told.join(', ')}`)]
      : []),
  ];
  const unsettled = agents.reduce((sum, { records }) => sum + usageOf(records).unsettled.length, 0);
  return { violations, unknownTold: told.length, unsettled };
}

/** A stop cuts the request that is under way, as a death does. */
function toStop(cancelledMs: number | undefined): Done[] {
  if (cancelledMs === undefined) return [];
  return [{ atMs: cancelledMs, untilMs: Infinity, what: 'cancelled', hitsCommands: false }];
}

/** What a person said is in the root's conversation once, if the sender was told so; never twice. */
function messageProblems({ message, answer }: Doings, agents: readonly Agent[]): Violation[] {
  const records = agents.flatMap((agent) => agent.records);
  const blocks = records.flatMap((record) => (record.type === 'message' ? record.content : []));
  const count = blocks.filter((block) => block.text === message).length;
  if (count > 1) return [doubled(`the message ${JSON.stringify(message)} was said ${count} times`)];
  if (count === 0 && answer === 'taken') return [lost(`the message ${JSON.stringify(message)} was taken and not said`)];
  return count === 1 && answer === 'refused'
    ? [untrue(`the message ${JSON.stringify(message)} was refused and said`)]
    : [];
}

/** In answers that a model gets to read: the last ones of a cancelled agent close its transcript, and nobody does. */
function unknownTold({ role, records }: Agent): string[] {
  const lastReply = records.findLast((record) => record.type === 'message' && record.role === 'assistant');
  const before = records.slice(0, lastReply && records.indexOf(lastReply));
  return before.flatMap((record) => {
    if (record.type !== 'message' || record.role !== 'user') return [];
    const told = record.content.filter(
      (block) => block.is_error === true && String(block.content).includes('effects unknown'),
    );
    return told.map(() => `${role}, turn ${record.turn}`);
  });
}

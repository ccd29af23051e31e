import { usageOf } from '../../src/store/usage.ts';
import type { Usage } from '../../src/protocol.ts';
import type { EndRecord } from '../../src/store/records.ts';
import type { Agent } from './agents.ts';
import { LAST_WORDS, TODOS } from './job.ts';
import { describe, heardOfStopMs, todosOf } from './run.ts';
import type { JobRun } from './run.ts';
import { lost, untrue } from './violation.ts';
import type { Done, Violation } from './violation.ts';
import type { World } from './world.ts';

export interface EndingInput {
  readonly world: World;
  readonly run: JobRun;
  readonly agents: readonly Agent[];
  readonly kills: readonly Done[];
  readonly cancelledMs?: number;
}

const ROLES = ['below', 'leaf', 'middle', 'root'];
/** From a stop, or from the last death after it, to the last terminal record: missed heartbeats and a retry included. */
const STOPS_WITHIN_MS = 60_000;

/** Promises 1, 5 and 6: every agent ended once, as it should, and says the same everywhere. */
export async function endingProblems(input: EndingInput): Promise<Violation[]> {
  const { world, run, agents, cancelledMs } = input;
  const ofAgents = await Promise.all(agents.map((agent) => agentProblems(input, agent)));
  return [
    ...roleProblems(input),
    ...ofAgents.flat(),
    ...(cancelledMs === undefined ? await wholeRunProblems(world, run, agents) : []),
  ];
}

/** A cancelled run may not have got to all of its agents. */
function roleProblems({ agents, cancelledMs }: EndingInput): Violation[] {
  const roles = agents.map(({ role }) => role).toSorted();
  const isWhole = roles.join() === ROLES.join();
  const isPart = new Set(roles).size === roles.length && roles.includes('root') && roles.every(isRole);
  if (cancelledMs === undefined ? isWhole : isPart) return [];
  return [lost(`the agents are ${roles.join(', ')}`)];
}

function isRole(role: string): boolean {
  return ROLES.includes(role);
}

async function agentProblems(input: EndingInput, agent: Agent): Promise<Violation[]> {
  const { meta, role, records } = agent;
  const ends = records.filter((record) => record.type === 'end');
  const [end] = ends;
  if (end === undefined || ends.length > 1) return [lost(`${role} has ${ends.length} terminal records`)];
  const workflow = await describe(input.world, meta.workflowId);
  return [
    ...(await statusProblems(input, agent, end)),
    ...(workflow?.toLowerCase() === end.status ? [] : [lost(`the workflow of ${role} is ${workflow}`)]),
    ...(meta.status === end.status
      ? []
      : [untrue(`meta of ${role} says ${meta.status}, its transcript ${end.status}`)]),
    ...turnProblems(agent, end),
    ...usageProblems(agent, end, input.agents),
  ];
}

/**
 * Whoever hears that it is to stop may complete all the same if the last request had left before. An agent is told by its
 * parent's next workflow task, hears of it in its own next one, and either may have died with a worker.
 */
async function statusProblems(
  { world, cancelledMs, kills }: EndingInput,
  { role, records, meta }: Agent,
  end: EndRecord,
): Promise<Violation[]> {
  const said = lost(`${role} ended ${end.status}${end.error === undefined ? '' : `: ${end.error}`}`);
  if (cancelledMs === undefined) return end.status === 'completed' ? [] : [said];
  const lastAsked = Date.parse(records.findLast(({ type }) => type === 'attempt')?.at ?? '');
  if (end.status === 'completed' && lastAsked > ((await heardOfStopMs(world, meta.workflowId)) ?? Infinity))
    return [said];
  if (end.status !== 'cancelled' && end.status !== 'completed') return [said];
  const endMs = Date.parse(end.at);
  const untilMs = kills.filter(({ atMs }) => atMs < endMs).map((kill) => kill.untilMs);
  const tookMs = endMs - Math.max(cancelledMs, ...untilMs);
  return tookMs <= STOPS_WITHIN_MS ? [] : [lost(`${role} took ${Math.round(tookMs / 1000)} s to stop`)];
}

/** Every turn has its reply, and nothing comes after the end but what was still owed. */
function turnProblems({ role, records, meta }: Agent, end: EndRecord): Violation[] {
  const turns = records.flatMap((record) =>
    record.type === 'message' && record.role === 'assistant' ? [record.turn] : [],
  );
  const isCounted = turns.every((turn, index) => turn === index + 1);
  // The turn that a stop came into has no reply.
  const known = end.status === 'cancelled' ? [turns.length, turns.length + 1] : [turns.length];
  const late = records.slice(records.indexOf(end) + 1).filter(({ type }) => type !== 'usage');
  return [
    ...(isCounted ? [] : [lost(`the turns of ${role} are ${turns.join(', ')}`)]),
    ...(known.includes(end.turns)
      ? []
      : [untrue(`${role} ended after ${end.turns} turns, with ${turns.length} replies`)]),
    ...(meta.turns === end.turns ? [] : [untrue(`meta of ${role} says ${meta.turns} turns, its end ${end.turns}`)]),
    ...late.map(({ id }) => untrue(`${id} was recorded after the end of ${role}`)),
  ];
}

/** What a terminal record and a meta file say of the cost is what the transcripts of the agent and those below it say. */
function usageProblems(agent: Agent, end: EndRecord, agents: readonly Agent[]): Violation[] {
  const own = toText(usageOf(agent.records).own);
  const subtree = toText(...below(agent, agents).map(({ records }) => usageOf(records).own));
  const told: readonly (readonly [string, Usage, string])[] = [
    ['end', end.usage.own, own],
    ['end, with those below', end.usage.subtree, subtree],
    ['meta', agent.meta.usage.own, own],
    ['meta, with those below', agent.meta.usage.subtree, subtree],
  ];
  return told
    .filter(([, usage, right]) => toText(usage) !== right)
    .map(([where, usage, right]) =>
      untrue(`usage of ${agent.role} in its ${where} is ${toText(usage)}, its transcripts give ${right}`),
    );
}

function below(agent: Agent, agents: readonly Agent[]): Agent[] {
  const children = agents.filter(({ meta }) => meta.parentAgentId === agent.meta.agentId);
  return [agent, ...children.flatMap((child) => below(child, agents))];
}

function toText(...usages: readonly Usage[]): string {
  const sum = (of: (usage: Usage) => number): number => usages.reduce((total, usage) => total + of(usage), 0);
  const input = sum((usage) => usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens);
  return `${input} + ${sum((usage) => usage.outputTokens)} in ${sum((usage) => usage.requests)} requests`;
}

async function wholeRunProblems(world: World, run: JobRun, agents: readonly Agent[]): Promise<Violation[]> {
  const root = agents.find(({ role }) => role === 'root');
  const last = root?.records.findLast((record) => record.type === 'message');
  const todos = JSON.stringify(await todosOf(world, run));
  return [
    ...(JSON.stringify(last ?? '').includes(LAST_WORDS) ? [] : [lost(`the last words of ${run.runId} are missing`)]),
    ...(todos === JSON.stringify(TODOS) ? [] : [lost(`the todo list of ${run.runId} is ${todos}`)]),
  ];
}

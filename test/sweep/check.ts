import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { agentFolder } from '../../src/effects/journal.ts';
import { listOpenJobs } from '../../src/jobs/cancel-job.ts';
import { stubbedIds } from '../../src/model/context.ts';
import type { LedgerEntry } from '../../src/simulator/index.ts';
import { conversation } from '../../src/store/chain.ts';
import { journalRoot, transcriptFile } from '../../src/store/layout.ts';
import { listAgents } from '../../src/store/listing.ts';
import { toWireMessages } from '../../src/store/messages.ts';
import { readTranscript } from '../../src/store/read.ts';
import type { AgentMeta, TranscriptRecord } from '../../src/store/records.ts';
import { usageOf } from '../../src/store/usage.ts';
import { LAST_WORDS, MARKS } from './job.ts';
import { processesOf } from './processes.ts';
import { describe, filesIn } from './run.ts';
import type { JobRun } from './run.ts';
import type { World } from './world.ts';

/** What went wrong, by the column of the table that it counts in. */
export interface Violation {
  readonly kind: 'lost' | 'doubled' | 'orphan' | 'untrue';
  readonly text: string;
}

/** A kill that happened. */
export interface Done {
  readonly atMs: number;
  readonly what: string;
  /** Whether supervisors of shell commands were among the victims. */
  readonly hitsCommands: boolean;
}

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

interface Agent {
  readonly meta: AgentMeta;
  readonly role: string;
  readonly records: readonly TranscriptRecord[];
  readonly lines: readonly string[];
  /** Requests the model server got from it. */
  readonly served: readonly LedgerEntry[];
}

/** Everything that must be true of a run that has ended. */
export async function checkRun(input: CheckInput): Promise<Verdict> {
  const agents = await readAgents(input);
  const told = agents.flatMap(unknownTold);
  const violations = [
    ...(await endingProblems(input, agents)),
    ...effectProblems(input),
    ...agents.flatMap((agent) => [
      ...replyProblems(agent),
      ...billProblems(agent, input.kills),
      ...replayProblems(agent),
    ]),
    ...(await leftovers(input, agents)),
    ...(told.length > 0 && !input.kills.some(({ hitsCommands }) => hitsCommands)
      ? [untrue(`an unknown effect was told though no command was hit: ${told.join(', ')}`)]
      : []),
  ];
  const unsettled = agents.reduce((sum, { records }) => sum + usageOf(records).unsettled.length, 0);
  return { violations, unknownTold: told.length, unsettled };
}

async function readAgents({ world, run }: CheckInput): Promise<Agent[]> {
  const { agents } = await listAgents(world.home, run.stem);
  const ledger = world.simulator.ledger();
  return Promise.all(
    agents.map(async (meta) => {
      const file = transcriptFile(world.home, { ...meta, transcript: run.stem });
      const { records } = await readTranscript(file);
      const role = roleIn(JSON.stringify(records.find((record) => record.type === 'message')));
      const served = ledger.filter(({ agentMarker }) => agentMarker.includes(`job=${run.job} role=${role}]`));
      return { meta, role, records, served, lines: readFileSync(file, 'utf8').split('\n') };
    }),
  );
}

function roleIn(text: string | undefined): string {
  return /role=(\w+)\]\]/.exec(text ?? '')?.[1] ?? 'unknown';
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

/** Nothing recorded is recorded twice, or asked for again. */
function replyProblems({ role, records, lines, served }: Agent): Violation[] {
  const replies = records.filter((record) => record.type === 'message' && record.role === 'assistant');
  return replies.flatMap((reply) => {
    const turn = 'turn' in reply ? reply.turn : 0;
    const copies = lines.filter((line) => line.includes(`"id":"${reply.id}"`)).length;
    const later = served.filter((entry) => entry.turn === turn && Date.parse(entry.at) > Date.parse(reply.at));
    return [
      ...(copies === 1 ? [] : [doubled(`reply ${turn} of ${role} is there ${copies} times`)]),
      ...later.map(({ n }) => doubled(`reply ${turn} of ${role} was recorded and asked for again (request ${n})`)),
    ];
  });
}

/** Promise 7: what was served is what was settled, plus the unsettled attempts within their bounds. */
function billProblems({ role, records, served }: Agent, kills: readonly Done[]): Violation[] {
  const { own, unsettled } = usageOf(records);
  const input = sum(
    served,
    ({ usage }) => usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
  );
  const output = sum(served, ({ usage }) => usage.output_tokens);
  const ownInput = own.inputTokens + own.cacheReadTokens + own.cacheWriteTokens;
  const mostInput = ownInput + sum(unsettled, (one) => one.inputTokensMax - one.inputTokensMin);
  const mostOutput = own.outputTokens + sum(unsettled, (one) => one.outputTokensMax - one.outputTokensMin);
  const isWithin = input >= ownInput && input <= mostInput && output >= own.outputTokens && output <= mostOutput;
  return [
    ...(isWithin
      ? []
      : [
          untrue(
            `the bill of ${role}: served ${input} + ${output}, settled ${ownInput} + ${own.outputTokens}, ` +
              `at most ${mostInput} + ${mostOutput}`,
          ),
        ]),
    ...unsettledProblems(role, records, kills),
  ];
}

/** An agent has one model call at a time: each unsettled attempt needs a kill of its own between it and the next one. */
function unsettledProblems(role: string, records: readonly TranscriptRecord[], kills: readonly Done[]): Violation[] {
  const attempts = records.filter((record) => record.type === 'attempt');
  return usageOf(records).unsettled.flatMap(({ turn, attempt }) => {
    const index = attempts.findIndex((record) => record.turn === turn && record.attempt === attempt);
    const from = Date.parse(attempts[index]?.at ?? '');
    const to = Date.parse(attempts[index + 1]?.at ?? records.at(-1)?.at ?? '');
    const isExplained = kills.some(({ atMs }) => atMs >= from - CLOCK_MS && atMs <= to);
    return isExplained ? [] : [untrue(`attempt ${attempt} of turn ${turn} of ${role} is unsettled without a kill`)];
  });
}

/** Between a death and the moment it is noted. */
const CLOCK_MS = 100;

/** The transcript gives, message for message, what the model server received. */
function replayProblems({ role, records, served }: Agent): Violation[] {
  const received = new Set(served.map(({ messages }) => JSON.stringify(withoutMarks(messages))));
  const chain = conversation(records);
  return chain.flatMap((record, index) => {
    if (record.type !== 'message' || record.role !== 'assistant') return [];
    const before = chain.slice(0, index);
    const sent = JSON.stringify(toWireMessages(before, { stubbed: stubbedIds(before) }));
    return received.has(sent) ? [] : [untrue(`turn ${record.turn} of ${role} replays to a request that nobody sent`)];
  });
}

async function leftovers({ world, run }: CheckInput, agents: readonly Agent[]): Promise<Violation[]> {
  const processes = [...processesOf(run.workspace), ...processesOf(join(journalRoot(world.home), run.runId))];
  const jobs = (await listOpenJobs(journalRoot(world.home))).filter(({ runId }) => runId === run.runId);
  const claims = agents.flatMap(({ meta }) => openClaims(agentFolder(world.home, { ...run, agentId: meta.agentId })));
  return [
    ...processes.map(({ pid, command }) => orphan(`process ${pid}: ${command.slice(0, 160)}`)),
    ...jobs.map(({ folder }) => orphan(`open job ${folder}`)),
    ...claims.map((folder) => orphan(`claimed without a result: ${folder}`)),
  ];
}

function openClaims(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((call) => existsSync(join(call, 'claim.json')) || existsSync(join(call, 'job')))
    .filter((call) => !existsSync(join(call, 'result.json')));
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

/** Cache marks move with every request; they are no part of the conversation. */
function withoutMarks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMarks);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => name !== 'cache_control');
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutMarks(inner)]));
}

function sum<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((total, item) => total + of(item), 0);
}

function lost(text: string): Violation {
  return { kind: 'lost', text };
}

function doubled(text: string): Violation {
  return { kind: 'doubled', text };
}

function orphan(text: string): Violation {
  return { kind: 'orphan', text };
}

function untrue(text: string): Violation {
  return { kind: 'untrue', text };
}

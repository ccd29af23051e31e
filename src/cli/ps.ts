import type { Command } from 'commander';
import { colors as pc } from './colors.ts';
import { listRuns } from '../store/listing.ts';
import type { AgentMeta } from '../store/records.ts';
import { readConfigToLook, warn, warnOfTrouble, type CommandContext } from './context.ts';
import { formatDuration, formatTable, formatTokens, totalTokens } from './format.ts';
import { printJson, printLine } from './io.ts';
import { liveMeta, type LiveAgent } from './live-meta.ts';
import { parseWhole } from './option-values.ts';
import { oneLine } from './text.ts';
import { waitingRuns } from './waiting.ts';

export function addPs(program: Command, context: CommandContext): void {
  program
    .command('ps')
    .description('list runs, newest first')
    .option('--limit <n>', 'at most so many', parseWhole(1, 100_000), 50)
    .option('--json', 'one JSON object a line: the fields of the root agent')
    .action((options: PsOptions) => ps(context, options));
}

interface PsOptions {
  readonly limit: number;
  readonly json?: true;
}

async function ps(context: CommandContext, { limit, json }: PsOptions): Promise<void> {
  const { stdout } = context.io;
  const config = readConfigToLook(context);
  const home = config.home.value;
  warnOfTrouble(context, home);
  const { runs: listed, problems } = await listRuns(home, { limit });
  for (const { file, reason } of problems) warn(context, `${file}: ${reason}`);
  const live: LiveAgent[] = [];
  for (const { transcript, meta } of listed) live.push(await liveMeta(home, transcript, meta));
  for (const { problem } of live) if (problem !== undefined) warn(context, problem);
  const waiting = await waitingRuns(config, live);
  const runs = live.map(({ meta }, i) => ({
    meta,
    transcript: listed[i]?.transcript,
    waitingFor: waiting.get(meta.workflowId),
  }));
  if (json) for (const { meta, transcript, waitingFor } of runs) printJson(stdout, { ...meta, transcript, waitingFor });
  else if (runs.length === 0) printLine(stdout, 'No runs yet. errand run "what to do" starts one.');
  else for (const line of tableOf(runs)) printLine(stdout, line);
}

const HEADINGS = ['RUN', 'STATUS', 'STARTED', 'TOOK', 'TURNS', 'TOKENS', 'TASK'];

interface ShownRun {
  readonly meta: AgentMeta;
  readonly waitingFor: string | undefined;
}

/** A line a run; one that waits has its reason below. */
function tableOf(runs: readonly ShownRun[]): readonly string[] {
  const [headings = '', ...rows] = formatTable([HEADINGS, ...runs.map(toRow)]).split('\n');
  const reasons = runs.map(({ waitingFor }) => (waitingFor === undefined ? [] : [waitingLine(waitingFor)]));
  return [headings, ...rows.flatMap((row, i) => [row, ...(reasons[i] ?? [])])];
}

function waitingLine(reason: string): string {
  return pc.yellow(`  waiting: ${oneLine(reason, 300)}`);
}

function toRow({ meta, waitingFor }: ShownRun): readonly string[] {
  const { runId, startedAt, endedAt, turns, usage, description } = meta;
  const status = waitingFor === undefined ? meta.status : 'waiting';
  const tookMs = (endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt);
  const started = startedAt.slice(0, 16).replace('T', ' ');
  const tokens = formatTokens(totalTokens(usage.subtree));
  return [runId, status, started, formatDuration(tookMs), String(turns), tokens, oneLine(description, 60)];
}

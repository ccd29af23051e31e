import type { Command } from 'commander';
import { listRuns, type RunListing } from '../store/listing.ts';
import { readConfigToLook, warn, warnOfTrouble, type CommandContext } from './context.ts';
import { formatDuration, formatTable, formatTokens, totalTokens } from './format.ts';
import { printJson, printLine } from './io.ts';
import { liveMeta } from './live-meta.ts';
import { parseWhole } from './option-values.ts';
import { oneLine } from './text.ts';

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
  const home = readConfigToLook(context).home.value;
  warnOfTrouble(context, home);
  const { runs: listed, problems } = await listRuns(home, { limit });
  for (const { file, reason } of problems) warn(context, `${file}: ${reason}`);
  const runs: RunListing[] = [];
  for (const run of listed) runs.push({ ...run, meta: await liveMeta(home, run.transcript, run.meta) });
  if (json) for (const { meta, transcript } of runs) printJson(stdout, { ...meta, transcript });
  else if (runs.length === 0) printLine(stdout, 'No runs yet. errand run "what to do" starts one.');
  else printLine(stdout, formatTable([HEADINGS, ...runs.map(toRow)]));
}

const HEADINGS = ['RUN', 'STATUS', 'STARTED', 'TOOK', 'TURNS', 'TOKENS', 'TASK'];

function toRow({ runId, meta }: RunListing): readonly string[] {
  const { status, startedAt, endedAt, turns, usage, description } = meta;
  const tookMs = (endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt);
  const started = startedAt.slice(0, 16).replace('T', ' ');
  const tokens = formatTokens(totalTokens(usage.subtree));
  return [runId, status, started, formatDuration(tookMs), String(turns), tokens, oneLine(description, 60)];
}

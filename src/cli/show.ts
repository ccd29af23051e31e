import type { Command } from 'commander';
import { colors as pc } from './colors.ts';
import { transcriptFile } from '../store/layout.ts';
import type { FoundRun } from '../store/find-run.ts';
import { agentTree, listAgents, type AgentNode } from '../store/listing.ts';
import { readTranscript } from '../store/read.ts';
import type { AgentMeta } from '../store/records.ts';
import { loadSubtreeUsage } from '../store/subtree-usage.ts';
import type { Config } from '../config.ts';
import type { Todo } from '../protocol.ts';
import { findRunOrSay, readConfigToLook, warn, warnOfTrouble, type CommandContext } from './context.ts';
import { EventReader, type AgentEvent } from './follow/events.ts';
import { formatDuration, formatTodos, formatTurns, formatUsage } from './format.ts';
import { printJson, printLine } from './io.ts';
import { liveMeta, type LiveAgent } from './live-meta.ts';
import { printRunDiff } from './run-diff.ts';
import { oneLine } from './text.ts';
import { lookUpUnopened, unopenedWords, type Unfound } from './unopened.ts';
import { waitingAgents, type Waiting } from './waiting.ts';

export function addShow(program: Command, context: CommandContext): void {
  program
    .command('show')
    .description('the tree of a run with status, usage and last step')
    .argument('<run>', 'id of a run, or enough of it')
    .option('--json', 'the root\'s meta.json with the children under "agents"')
    .option('--diff', 'the whole diff of the workspace since the run began, and nothing else')
    .action((name: string, options: ShowOptions) => show(context, name, options));
}

interface ShowOptions {
  readonly json?: true;
  readonly diff?: true;
}

async function show(context: CommandContext, name: string, options: ShowOptions): Promise<void> {
  const config = readConfigToLook(context);
  const { stdout } = context.io;
  const home = config.home.value;
  warnOfTrouble(context, home);
  const run = await findRunOrSay(config, name);
  if ('problem' in run) return showUnopened(context, config, { name, problem: run.problem }, options);
  if (options.diff) return printRunDiff(context, { home, run, maxLines: Infinity });
  const { agents: listed, problems } = await listAgents(home, run.transcript);
  const live: LiveAgent[] = [];
  for (const agent of listed) live.push(await liveMeta(home, run.transcript, agent));
  for (const { file, reason } of problems) warn(context, `${file}: ${reason}`);
  for (const { problem } of live) if (problem !== undefined) warn(context, problem);
  const waiting = await waitingAgents(config, live);
  const [root, ...strays] = agentTree(live.map(({ meta }) => withReason(meta, waiting)));
  if (root === undefined) return warn(context, `Run ${run.runId} has no readable transcript: ${run.file}`);
  if (options.json) return printJson(stdout, { ...root, agents: [...root.agents, ...strays], transcript: run.file });
  for (const node of [root, ...strays]) await printNode(context, { home, run, node, indent: '' });
  // Where a transcript cannot be read, which was said above, the metas are what is known.
  const place = { runId: run.runId, agentId: run.runId, transcript: run.transcript };
  const total = await loadSubtreeUsage(home, place).catch(() => root.usage.subtree);
  printLine(stdout, `\nusage: ${formatUsage(total)}\ntranscript: ${run.file}`);
}

async function showUnopened(context: CommandContext, config: Config, unfound: Unfound, { json }: ShowOptions) {
  const run = await lookUpUnopened(config, unfound);
  const { runId, status, startedAt } = run;
  if (json) return printJson(context.io.stdout, { runId, agentId: runId, status, startedAt, turns: 0, agents: [] });
  printLine(context.io.stdout, `${runId} · ${status} · since ${startedAt}\n  ${unopenedWords(run)}`);
}

/** An agent of the tree, and why it does not move. */
type ShownAgent = AgentMeta & { readonly waitingFor?: string };

function withReason(meta: AgentMeta, waiting: Waiting): ShownAgent {
  const waitingFor = waiting.get(meta.workflowId);
  return waitingFor === undefined ? meta : { ...meta, waitingFor };
}

interface NodePlace {
  readonly home: string;
  readonly run: FoundRun;
  readonly node: AgentNode<ShownAgent>;
  readonly indent: string;
}

async function printNode(context: CommandContext, { home, run, node, indent }: NodePlace): Promise<void> {
  const { stdout } = context.io;
  const { agentId, description, agentType, turns, startedAt, endedAt, usage, error, agents, waitingFor } = node;
  const status = waitingFor === undefined ? node.status : 'waiting';
  const tookMs = (endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt);
  const { lastStep, todos } = await lastWords(
    transcriptFile(home, { runId: run.runId, agentId, transcript: run.transcript }),
  );
  printLine(stdout, `${indent}${pc.bold(oneLine(description, 80))} (${oneLine(agentType, 40)}) · ${status}`);
  printLine(
    stdout,
    `${indent}  ${agentId} · ${formatTurns(turns)} · ${formatDuration(tookMs)} · ${formatUsage(usage.own)}`,
  );
  if (waitingFor !== undefined) printLine(stdout, pc.yellow(`${indent}  waiting: ${oneLine(waitingFor, 300)}`));
  if (lastStep !== '') printLine(stdout, `${indent}  last step: ${oneLine(lastStep)}`);
  if (todos.length > 0) printLine(stdout, `${indent}  todos: ${oneLine(formatTodos(todos))}`);
  if (error !== null) printLine(stdout, `${indent}  ${status}: ${oneLine(error, 300)}`);
  for (const child of agents) await printNode(context, { home, run, node: child, indent: `${indent}    ` });
}

async function lastWords(file: string): Promise<{ lastStep: string; todos: readonly Todo[] }> {
  const { records } = await readTranscript(file).catch(() => ({ records: [] }));
  const reader = new EventReader();
  const events = records.flatMap((record) => reader.read({ agentId: '', record }));
  const todos = events.findLast((event) => event.type === 'todos')?.todos ?? [];
  return { lastStep: stepOf(events.findLast((event) => event.type === 'call' || isText(event))), todos };
}

function isText(event: AgentEvent): boolean {
  return event.type === 'turn' && event.text !== '';
}

function stepOf(event: AgentEvent | undefined): string {
  if (event?.type === 'call') return event.summary;
  return event?.type === 'turn' ? event.text : '';
}

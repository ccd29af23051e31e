import {
  awaitResult,
  describePending,
  isUnreachable,
  requestCancel,
  type RunEnding,
  type StartedRun,
} from '../../client.ts';
import type { Config } from '../../config.ts';
import { finalText } from '../../model/last-text.ts';
import { NO_USAGE, workflowId, type AgentStatus, type Usage } from '../../protocol.ts';
import { endOf } from '../../store/meta.ts';
import { readTranscript } from '../../store/read.ts';
import { loadSubtreeUsage } from '../../store/subtree-usage.ts';
import { EXIT, exitCodeOf } from '../cli-error.ts';
import { warn, type CommandContext } from '../context.ts';
import { formatLines, formatTurns, formatUsage } from '../format.ts';
import { printJson, printLine } from '../io.ts';
import { printRunDiff } from '../run-diff.ts';
import type { Session } from '../session.ts';
import { stillRunning } from '../still-running.ts';
import { oneLine, printable } from '../text.ts';
import type { EarlyStop } from './early-stop.ts';
import { followRun, SeenRun, type Followed, type RunWatch } from './follow.ts';
import { listenForInterrupts, type Interrupts } from './interrupts.ts';
import { createJsonView, createLineView } from './line-view.ts';
import { createTreeView } from './tree-view.ts';
import type { FollowView } from './view.ts';

/** A run, and how it is reported. */
export interface ReportCommand {
  readonly config: Config;
  readonly run: StartedRun;
  readonly json: boolean;
  /** Print what changed in the workspace and what still runs, too; not with `json`. */
  readonly diff?: boolean;
  /** Missing for a run that is told from its files alone. */
  readonly session?: Session;
}

/** A run to follow. */
export interface FollowCommand extends ReportCommand {
  readonly session: Session;
  /** Who has heard signals until now; closed once following hears them itself, so that none falls between. */
  readonly early?: EarlyStop;
}

/** Agents of one run that are asked why they wait. */
const MAX_ASKED = 20;

const MAX_DIFF_LINES = 200;

/** The first line: which run it is. */
export function announce({ io }: CommandContext, { run, session, json }: ReportCommand): void {
  const { runId, file } = run;
  if (json) printJson(io.stdout, { type: 'run', run: runId, transcript: file, ...uiField(session, runId) });
  else printLine(io.stdout, runId);
}

/** Follows a run, prints its result, and sets the command's exit code. */
export async function followToTheEnd(context: CommandContext, command: FollowCommand): Promise<void> {
  if (command.early?.signal !== undefined) return leave(context, command);
  const view = createView(context, command);
  const interrupts = listen(context, command, view);
  command.early?.close();
  const followed = await follow(command, view, interrupts);
  if (followed.ending === undefined) return leave(context, command);
  await report(context, command, followed.ending);
  if (followed.seen.skippedLines > 0)
    warn(context, `${formatLines(followed.seen.skippedLines)} of the transcripts skipped: no record.`);
}

/** Shows a run that has ended, and its result, without any server. */
export async function reportEnded(context: CommandContext, command: ReportCommand, ending: RunEnding): Promise<void> {
  const view = createView(context, command);
  await new SeenRun(command.config.home.value, command.run.stem, view).drain();
  view.close();
  await report(context, command, ending);
}

async function follow(
  { config, session, run }: FollowCommand,
  view: FollowView,
  interrupts: Interrupts,
): Promise<Followed> {
  try {
    const { detached } = interrupts;
    return await followRun({
      home: config.home.value,
      stem: run.stem,
      watch: watchOf(session, run.runId),
      view,
      detached,
    });
  } finally {
    interrupts.close();
    view.close();
  }
}

function createView({ io }: CommandContext, { json, run }: ReportCommand): FollowView {
  if (json) return createJsonView(io.stdout, io.stderr, run.runId);
  return io.stdout.isTTY ? createTreeView(io.stdout) : createLineView(io.stdout);
}

function listen({ io }: CommandContext, { session, run, json }: FollowCommand, view: FollowView): Interrupts {
  return listenForInterrupts(io, {
    ask: !json && io.stdin.isTTY === true && io.stdout.isTTY === true,
    print: (line) => view.print(line),
    cancel: () => {
      requestCancel(session.temporal.client, run.runId).catch((error: unknown) => {
        view.print(`The run could not be cancelled: ${error instanceof Error ? error.message : String(error)}`);
      });
    },
  });
}

function watchOf(session: Session, runId: string): RunWatch {
  return {
    ending: () => awaitResult(session.temporal.client, runId),
    reconnect: () => session.reconnect(),
    isUnreachable,
    waiting: async (agents, since) => {
      const ids = new Set([runId, ...agents.slice(0, MAX_ASKED).map((agentId) => workflowId(runId, agentId))]);
      const ask = (id: string) => describePending(session.temporal.client, id, since);
      const reasons = await Promise.all([...ids].map(ask));
      return [...new Set(reasons.filter((reason) => reason !== undefined))];
    },
  };
}

function leave(context: CommandContext, { run: { runId } }: FollowCommand): void {
  warn(context, `Detached; the run goes on. errand watch ${runId} · errand cancel ${runId}`);
  context.exit(EXIT.detached);
}

interface Report {
  readonly status: AgentStatus;
  readonly text: string;
  readonly usage: Usage;
  readonly turns: number;
  readonly error?: string;
}

async function report(context: CommandContext, command: ReportCommand, ending: RunEnding): Promise<void> {
  const found = await readReport(command, ending);
  if (command.json) printJsonReport(context, command, found);
  else await printReport(context, command, found);
  context.exit(exitCodeOf(found.status));
}

// The status is the server's; words and bill are the files', which are whole also where the server knows no result.
async function readReport({ config, run }: ReportCommand, ending: RunEnding): Promise<Report> {
  const { status, error, result } = ending;
  const place = { runId: run.runId, agentId: run.runId, transcript: run.stem };
  const records = await readTranscript(run.file).then(
    (transcript) => transcript.records,
    () => undefined,
  );
  if (records === undefined) return { status, text: '', usage: result?.usage.subtree ?? NO_USAGE, turns: 0, error };
  const usage = await loadSubtreeUsage(config.home.value, place);
  const turns = records.reduce((last, record) => (record.type === 'message' ? Math.max(last, record.turn) : last), 0);
  return {
    status,
    text: finalText(records).text,
    usage,
    turns: endOf(records)?.turns ?? result?.turns ?? turns,
    error,
  };
}

function printJsonReport({ io }: CommandContext, { run, session }: ReportCommand, found: Report): void {
  const { status, text, usage, turns, error } = found;
  printJson(io.stdout, {
    type: 'result',
    run: run.runId,
    status,
    text,
    usage,
    costUsd: usage.costUsd,
    turns,
    ...(error !== undefined && { error }),
    transcript: run.file,
    ...uiField(session, run.runId),
  });
}

async function printReport(context: CommandContext, command: ReportCommand, found: Report): Promise<void> {
  const { config, run, session, diff } = command;
  const { status, text, usage, turns, error } = found;
  const ui = session && uiUrlOf(session, run.runId);
  const print = (line: string) => printLine(context.io.stdout, line);
  print(text === '' ? '' : `\n${printable(text)}\n`);
  if (diff) await printRunDiff(context, { home: config.home.value, run, maxLines: MAX_DIFF_LINES });
  print(`${status} · ${formatTurns(turns)}${error === undefined ? '' : ` · ${oneLine(error, 500)}`}`);
  print(`usage: ${formatUsage(usage)}`);
  print(`transcript: ${run.file}`);
  if (ui !== undefined) print(`Temporal UI: ${ui}`);
  if (diff) for (const line of await stillRunning(context)) print(line);
}

/** Address of the run's page in the Temporal UI; undefined for a server whose UI is not known. */
function uiUrlOf({ uiUrl, temporal }: Session, runId: string): string | undefined {
  return uiUrl && `${uiUrl}/namespaces/${temporal.namespace}/workflows/${runId}`;
}

/** The same as a field of a JSON line. */
function uiField(session: Session | undefined, runId: string): { readonly ui?: string } {
  const ui = session && uiUrlOf(session, runId);
  return ui === undefined ? {} : { ui };
}

import type { Command } from 'commander';
import { colors as pc } from './colors.ts';
import { transcriptFile } from '../store/layout.ts';
import { readTranscript } from '../store/read.ts';
import type { ContentBlock, TranscriptRecord } from '../store/records.ts';
import {
  findRunOrSay,
  lookUpAgent,
  readConfigToLook,
  readOrSay,
  warn,
  warnOfTrouble,
  type CommandContext,
} from './context.ts';
import { resultText } from './follow/events.ts';
import { formatLines, formatTurns, formatUsage } from './format.ts';
import { printJson, printLine } from './io.ts';
import { cutTo, oneLine, printable } from './text.ts';
import { lookUpUnopened, unopenedWords } from './unopened.ts';

export function addLogs(program: Command, context: CommandContext): void {
  program
    .command('logs')
    .description('a readable transcript')
    .argument('<run>', 'id of a run, or enough of it')
    .option('--agent <id>', 'a sub-agent: its id, the beginning of it, or some of its description')
    .option('--json', 'the records as they are, one a line')
    .action((name: string, options: LogsOptions) => logs(context, name, options));
}

interface LogsOptions {
  readonly agent?: string;
  readonly json?: true;
}

async function logs(context: CommandContext, name: string, options: LogsOptions): Promise<void> {
  const config = readConfigToLook(context);
  warnOfTrouble(context, config.home.value);
  const run = await findRunOrSay(config, name);
  if ('problem' in run) {
    const unopened = await lookUpUnopened(config, { name, problem: run.problem });
    return warn(context, `${unopened.runId}: ${unopenedWords(unopened)}`);
  }
  const agentId = await lookUpAgent(config, run, options.agent);
  const file = transcriptFile(config.home.value, { runId: run.runId, agentId, transcript: run.transcript });
  const { records, skipped, tornBytes } = await readOrSay(file, () => readTranscript(file));
  for (const record of records) {
    if (options.json) printJson(context.io.stdout, record);
    else for (const line of transcriptLines(record)) printLine(context.io.stdout, line);
  }
  if (skipped.lines > 0) warn(context, `${formatLines(skipped.lines)} (${skipped.bytes} bytes) skipped: no record.`);
  if (tornBytes > 0) warn(context, `The last line is not whole (${tornBytes} bytes).`);
}

const INPUT_LENGTH = 200;
const RESULT_LENGTH = 600;

/** A record as a person reads it; records that only machines need give no lines. */
export function transcriptLines(record: TranscriptRecord): readonly string[] {
  switch (record.type) {
    case 'session_meta':
      return [
        pc.bold(oneLine(record.description)),
        `agent ${record.agentId} (${oneLine(record.agentType, 40)}) · ${record.model} · ${record.at}`,
        `workspace ${printable(record.workspace)}`,
      ];
    case 'message':
      return [heading(record), ...record.content.flatMap(blockLines)];
    case 'usage':
      return record.outcome === 'complete'
        ? []
        : [pc.yellow(`  model call ${record.outcome}: ${oneLine(record.error ?? '')}`)];
    case 'end':
      return [
        '',
        pc.bold(`${record.status} · ${formatTurns(record.turns)}`),
        `usage: ${formatUsage(record.usage.subtree)}`,
        ...errorLines(record.error),
      ];
    default:
      return [];
  }
}

function heading({ role, turn, at }: { role: string; turn: number; at: string }): string {
  return `\n${pc.bold(`turn ${turn} · ${role === 'assistant' ? 'model' : 'input'}`)} ${pc.dim(at.slice(11, 19))}`;
}

function errorLines(error: string | undefined): readonly string[] {
  return error === undefined ? [] : [pc.red(oneLine(error, 500))];
}

function blockLines(block: ContentBlock): readonly string[] {
  switch (block.type) {
    case 'text':
      return [printable(String(block['text'] ?? ''))];
    case 'tool_use':
      return [
        `  → ${oneLine(String(block['name']), 60)} ${pc.dim(oneLine(JSON.stringify(block['input']) ?? '', INPUT_LENGTH))}`,
      ];
    case 'tool_result':
      return resultLines(block);
    case 'thinking':
      return [pc.dim(`  (thinking) ${oneLine(String(block['thinking'] ?? ''), INPUT_LENGTH)}`)];
    default:
      return [pc.dim(`  (${oneLine(block.type, 40)})`)];
  }
}

function resultLines(block: ContentBlock): readonly string[] {
  const text = printable(resultText(block)).trimEnd();
  const mark = block['is_error'] === true ? pc.red('✗') : '←';
  const more = text.length > RESULT_LENGTH ? [pc.dim(`    … ${text.length} characters in all`)] : [];
  const lines = cutTo(text, RESULT_LENGTH).split('\n');
  return [...lines.map((line, i) => (i === 0 ? `  ${mark} ${line}` : `    ${line}`)), ...more];
}

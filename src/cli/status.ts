import type { Command } from 'commander';
import { serverStatus, troubleWords, type InstanceStatus, type ProcessStatus } from '../server/index.ts';
import { readConfigToLook, type CommandContext } from './context.ts';
import { formatDuration } from './format.ts';
import { printJson, printLine } from './io.ts';
import { runningModelServer, type ModelServer } from './model-server-process.ts';

export function addStatus(program: Command, context: CommandContext): void {
  program
    .command('status')
    .description('what runs of this home: server, workers, addresses')
    .option('--json', 'one JSON object')
    .action((options: { json?: true }) => status(context, options.json === true));
}

async function status(context: CommandContext, json: boolean): Promise<void> {
  const home = readConfigToLook(context).home.value;
  const found = await serverStatus({ home });
  const model = runningModelServer(home);
  const modelServer = model && { url: model.url, pid: model.process.pid };
  if (json) return printJson(context.io.stdout, { ...found, modelServer });
  const lines = [...found.instances.flatMap(instanceLines), ...(model ? [modelServerLine(model)] : [])];
  if (found.trouble) lines.unshift(troubleWords(home, found.trouble));
  else if (found.instances.length === 0) lines.unshift(NOTHING[model ? 'besides' : 'atAll']);
  for (const line of lines) printLine(context.io.stdout, line);
}

const NOTHING = {
  atAll: 'Nothing runs. errand up starts server and workers.',
  besides: 'No server and no worker runs. errand up starts them.',
};

/** The same of the model simulator that a demo has started. */
export function modelServerLine({ url, process }: ModelServer): string {
  return `model simulator: ${url} · pid ${process.pid}`;
}

/** What one server and its workers look like to a person. */
export function instanceLines(instance: InstanceStatus): readonly string[] {
  const { running, embedded, address, namespace, uiUrl, temporal, workers, logs } = instance;
  const kind = embedded ? 'embedded Temporal server' : 'workers for another Temporal server';
  return [
    `${kind}: ${running ? 'up' : 'down'}${address === undefined ? '' : ` · ${address}`} · namespace ${namespace}`,
    ...(uiUrl !== undefined && running ? [`  UI ${uiUrl}`] : []),
    ...(temporal === undefined ? [] : [`  ${processLine(temporal)}`]),
    ...workers.map((worker) => `  ${processLine(worker)}`),
    `  logs ${logs}`,
  ];
}

function processLine({ name, pid, phase, uptimeMs, restarts }: ProcessStatus): string {
  const since = uptimeMs === undefined ? '' : ` · for ${formatDuration(uptimeMs)}`;
  return `${name} · ${phase}${pid === undefined ? '' : ` · pid ${pid}`}${since}${restarts > 0 ? ` · ${restarts} restarts` : ''}`;
}

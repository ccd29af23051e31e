import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { describeScenarios, startSimulator, type SimulatorOptions } from '../simulator/index.ts';
import { CliError } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { printLine } from './io.ts';
import { writeModelServer } from './model-server-process.ts';
import { parseWhole } from './option-values.ts';

export function addModelServer(program: Command, context: CommandContext): void {
  program
    .command('model-server')
    .description('a model that plays scenarios: speaks the Messages API on loopback, needs no key')
    .option('--scenario <name>', 'scenario to play when the prompt names none, or a JSON file with one', 'echo')
    .option('--port <n>', 'port on 127.0.0.1 (default: a free one)', parseWhole(0, 65_535))
    .option('--ledger <file>', 'keep a line for each request in this file')
    .option('--state <file>', 'write where it listens to this file')
    .addHelpText('after', scenarioList)
    .action((options: ModelServerOptions) => modelServer(context, options));
}

// The argument names of a scenario follow what it does: `[[scenario:NAME key=value]]` in a prompt sets them.
function scenarioList(): string {
  const lines = describeScenarios().flatMap(({ name, description, args }) => [
    `  ${name.padEnd(NAME_WIDTH)}${description}`,
    ...Object.entries(args).map(([key, meaning]) => `  ${''.padEnd(NAME_WIDTH)}  ${key}=  ${meaning}`),
  ]);
  return ['', 'Scenarios, named in a prompt as [[scenario:NAME key=value]]:', ...lines].join('\n');
}

const NAME_WIDTH = 13;

interface ModelServerOptions {
  readonly scenario: string;
  readonly port?: number;
  readonly ledger?: string;
  readonly state?: string;
}

async function modelServer(context: CommandContext, options: ModelServerOptions): Promise<void> {
  const { io } = context;
  const simulator = await start(context, options);
  if (options.state !== undefined) writeModelServer(options.state, simulator.port);
  printLine(io.stdout, `Listening on ${simulator.url}`);
  printLine(io.stdout, `ANTHROPIC_BASE_URL=${simulator.url} ANTHROPIC_API_KEY=any ERRAND_MODEL=sim-1 errand run "…"`);
  await new Promise<void>((resolvePromise) => {
    io.onSignals(['SIGINT', 'SIGTERM', 'SIGHUP'], () => resolvePromise());
  });
  await simulator.close();
}

async function start({ io }: CommandContext, options: ModelServerOptions) {
  const { port, ledger } = options;
  const ledgerFile = ledger === undefined ? undefined : resolve(io.cwd, ledger);
  try {
    return await startSimulator({ port, ledgerFile, ...(await scenarioOptions(io.cwd, options.scenario)) });
  } catch (error) {
    throw new CliError(error instanceof Error ? error.message : String(error));
  }
}

// A name, or the path of a file whose folder then gives further scenarios, too.
async function scenarioOptions(
  cwd: string,
  scenario: string,
): Promise<Pick<SimulatorOptions, 'scenario' | 'scenarios'>> {
  if (!scenario.endsWith('.json')) return { scenario };
  const file = resolve(cwd, scenario);
  if (!(await stat(file).catch(() => undefined))?.isFile())
    throw new Error(`The scenario file ${file} does not exist.`);
  return { scenario: basename(file, '.json'), scenarios: dirname(file) };
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { newRunId } from '../client.ts';
import { hasModelAccess, type Config } from '../config.ts';
import { DEMO_MODEL_SERVER } from '../protocol.ts';
import { probeSandbox } from '../sandbox/probe.ts';
import { assertOwnHome } from '../server/index.ts';
import { toMarker } from '../simulator/index.ts';
import { CliError } from './cli-error.ts';
import { commandName } from './command-name.ts';
import { readConfig, warn, type CommandContext } from './context.ts';
import { createDemoWorkspace } from './demo-workspaces.ts';
import { printLine } from './io.ts';
import { keepModelOfRuns } from './model-of-runs.ts';
import { ensureModelServer, simulatorEnvironment } from './model-server-process.ts';
import { run } from './run.ts';

export function addDemo(program: Command, context: CommandContext): void {
  program
    .command('demo')
    .description('a small job against the model simulator: needs no key and costs nothing')
    .option('--slow', 'two seconds a turn: time to kill workers and watch it go on')
    .option('--json', 'as with run')
    .action((options: DemoOptions) => demo(context, options));
}

interface DemoOptions {
  readonly slow?: true;
  readonly json?: true;
}

const TASK =
  'A test of this project fails. Find out why, look whether the same mistake was made elsewhere, repair it, and run the tests.';

async function demo(context: CommandContext, { slow, json }: DemoOptions): Promise<void> {
  const config = readConfig(context);
  const { project, home } = config;
  const example = join(project, 'examples', 'csv-report');
  if (!existsSync(example))
    throw new CliError(`The example ${example} is missing. Run git checkout examples in ${project}.`);
  assertOwnHome(home.value);
  // Before anything is started for it; asked again when the workers are.
  await keepModelOfRuns(config, DEMO_MODEL_SERVER);
  const { url } = await ensureModelServer(home.value);
  const prompt = `${TASK} ${toMarker('demo', { slow: slow ? 1 : undefined })}`;
  const id = newRunId(prompt);
  const workspace = await createDemoWorkspace(home.value, id);
  await copyTo(context, workspace, example);
  const say = (line: string) => (json ? warn(context, line) : printLine(context.io.stdout, line));
  if (!hasModelAccess(config)) say('No ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set: the model is simulated.');
  say(`The demo works on ${workspace}, a copy of examples/csv-report, with a simulated model.`);
  const exception = await withoutSandbox(config, workspace, say);
  const env = { ...simulatorEnvironment(context.io.env, url), ...exception };
  await run(context, prompt, { id, workspace, json, diff: true, model: 'sim-1' }, env);
  say(`Your own job: set a key and ERRAND_MODEL, then ${commandName(config, context.io.env)} run "what is to be done"`);
}

/** Where bubblewrap does not work, workers may run the demo's own command without it, in the scratch copy alone. */
async function withoutSandbox(
  { tools }: Config,
  workspace: string,
  say: (line: string) => void,
): Promise<Readonly<Record<string, string>>> {
  const { contains, problem } = await probeSandbox(tools.bwrap.value.path ?? null);
  if (contains) return {};
  say(`No sandbox here (${problem}): the demo's own command, node --test, runs without one, in the copy.`);
  return { ERRAND_DEMO_WORKSPACE: await realpath(workspace) };
}

async function copyTo(context: CommandContext, workspace: string, example: string): Promise<void> {
  await cp(example, workspace, { recursive: true });
  await promisify(execFile)('git', ['init', '--quiet'], { cwd: workspace }).catch((error: unknown) => {
    warn(context, `The copy is no git repository: ${error instanceof Error ? error.message : String(error)}`);
  });
}

import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import {
  assertNewRun,
  DuplicateRun,
  hasLeftNothing,
  newRunId,
  startRun,
  type RunSpec,
  type StartedRun,
} from '../client.ts';
import { hasModelAccess, type Config, type Environment } from '../config.ts';
import { modelServerOf } from '../model-server-id.ts';
import { MAX_HOPS, rootPolicy } from '../policy/defaults.ts';
import { SANDBOX_MODES, type Policy, type SandboxMode } from '../policy/policy.ts';
import { MAX_PROMPT_BYTES } from '../protocol.ts';
import { dropSnapshot, takeSnapshot } from '../snapshot/snapshot.ts';
import { CliError, EXIT } from './cli-error.ts';
import { readConfig, warn, type CommandContext } from './context.ts';
import { stopEarly, type EarlyStop } from './follow/early-stop.ts';
import { announce, followToTheEnd } from './follow/follow-command.ts';
import { resolveModel } from './models.ts';
import { parseDuration, parseRunId, parseSandbox, parseWhole } from './option-values.ts';
import { openSession, withSession, type Session } from './session.ts';
import { resolveWorkspace } from './workspace.ts';

/** Options of `run`, as commander reads them. */
export interface RunOptions {
  readonly workspace?: string;
  readonly model?: string;
  readonly sandbox?: SandboxMode;
  readonly maxTurns?: number;
  readonly timeout?: number;
  readonly hops?: number;
  readonly id?: string;
  readonly detach?: true;
  readonly diff?: true;
  readonly json?: true;
}

export function addRun(program: Command, context: CommandContext): void {
  program
    .command('run')
    .description('start a job and follow it')
    .argument('<prompt>', 'what to do; - reads it from standard input')
    .option('--workspace <dir>', 'the folder to work in (default: this one)')
    .option('--model <id>', 'the model to ask')
    .option('--sandbox <mode>', SANDBOX_MODES.join(' | '), parseSandbox)
    .option('--max-turns <n>', 'most turns of the root agent; one more of text alone may follow', parseWhole(1, 10_000))
    .option('--timeout <time>', 'longest time of the run: 90s, 30m, 2h, 3d', parseDuration)
    .option('--hops <n>', `levels of sub-agents, at most ${MAX_HOPS}`, parseWhole(0, MAX_HOPS))
    .option('--id <id>', 'id of the run instead of one made from the prompt', parseRunId)
    .option('--detach', 'print the id and leave the run to itself')
    .option('--diff', 'print at the end what changed in the workspace, and what still runs')
    .option('--json', 'one JSON object a line on standard output, all else on standard error')
    .action(async (prompt: string, options: RunOptions) => {
      await run(context, await readPrompt(context, prompt), options);
    });
}

/** A run that was followed, or left to itself. */
export interface RunReport {
  readonly run: StartedRun;
  readonly uiUrl?: string;
}

/** Starts a job and follows it; what it needs of server and workers is brought up. */
export async function run(
  context: CommandContext,
  prompt: string,
  options: RunOptions,
  environment: Environment = context.io.env,
): Promise<RunReport> {
  assertPrompt(prompt);
  const config = readConfig({ ...context, io: { ...context.io, env: environment } });
  const workspace = resolveWorkspace(config, context.io.cwd, options.workspace);
  assertCeiling(config, options.sandbox);
  assertModelAccess(config);
  const model = await resolveModel(config, options.model);
  const early = stopEarly(context.io);
  try {
    const session = await early.unlessStopped(openSession(context, { config, workerEnvironment: environment }));
    return await withSession(session, async () => {
      const job = { config, options, prompt, workspace, model, modelServer: modelServerOf(environment) };
      const started = await begin(context, session, toSpec(context, job), early);
      announce(context, { config, session, run: started, json: options.json === true });
      if (!options.detach) {
        const { json, diff } = options;
        await followToTheEnd(context, { config, session, run: started, json: json === true, diff, early });
      }
      return { run: started, uiUrl: session.uiUrl };
    });
  } finally {
    early.close();
  }
}

async function readPrompt({ io }: CommandContext, prompt: string): Promise<string> {
  return prompt === '-' ? readAll(io.stdin) : prompt;
}

function assertPrompt(prompt: string): void {
  if (prompt.trim() === '') throw new CliError('The prompt is empty. Say what is to be done: errand run "…".');
  const bytes = Buffer.byteLength(prompt);
  if (bytes <= MAX_PROMPT_BYTES) return;
  throw new CliError(
    `The prompt has ${bytes} bytes, at most ${MAX_PROMPT_BYTES} can be taken. ` +
      'Put it in a file of the workspace and name the file in the prompt.',
  );
}

function assertCeiling({ ceiling, configFile }: Config, sandbox: SandboxMode | undefined): void {
  if (sandbox === undefined || SANDBOX_MODES.indexOf(sandbox) <= SANDBOX_MODES.indexOf(ceiling.value.sandbox)) return;
  throw new CliError(
    `--sandbox ${sandbox} exceeds this host's ceiling, ${ceiling.value.sandbox}. ` +
      `The owner of the host may write "ceiling: ${sandbox}" in ${configFile}.`,
  );
}

function assertModelAccess(config: Config): void {
  if (hasModelAccess(config)) return;
  throw new CliError(
    'There is no model to ask: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for another server. errand demo needs neither.',
  );
}

interface Job {
  readonly config: Config;
  readonly options: RunOptions;
  readonly prompt: string;
  readonly workspace: string;
  readonly model: string;
  readonly modelServer: string;
}

function toSpec(context: CommandContext, job: Job): RunSpec {
  const { config, options, prompt, workspace, model, modelServer } = job;
  return {
    home: config.home.value,
    runId: options.id ?? newRunId(prompt),
    prompt,
    workspace,
    model,
    modelServer,
    policy: toPolicy(job),
    outageMs: config.limits.outageMs.value,
    historyEvents: config.limits.historyEvents.value,
    warn: (line) => warn(context, line),
  };
}

// Nobody can answer an approval through this version's command line, so a run is told at once that nobody will.
function toPolicy({ config, options, workspace, model }: Job): Policy {
  return rootPolicy({
    workspace,
    models: [model],
    sandbox: options.sandbox ?? lowerOf('workspace-write', config.ceiling.value.sandbox),
    network: config.ceiling.value.network,
    approvals: 'deny',
    hops: options.hops,
    maxTurns: options.maxTurns,
    timeoutMs: options.timeout,
  });
}

function lowerOf(a: SandboxMode, b: SandboxMode): SandboxMode {
  return SANDBOX_MODES.indexOf(a) <= SANDBOX_MODES.indexOf(b) ? a : b;
}

async function begin(context: CommandContext, session: Session, spec: RunSpec, early: EarlyStop): Promise<StartedRun> {
  const { home, runId, workspace } = spec;
  let isNewSnapshot = false;
  try {
    await assertNewRun(home, runId);
    const snapshot = await early.unlessStopped(takeSnapshot({ home, runId, workspace, env: context.io.env }));
    isNewSnapshot = snapshot.taken && snapshot.isNew;
    if (!snapshot.taken) warn(context, `No snapshot of the workspace, so no diff at the end: ${snapshot.reason}.`);
    const hint = `Stopped while run ${runId} was being started; errand ps tells whether it was.`;
    return await early.unlessInsisted(startRun(session.temporal, spec), hint);
  } catch (error) {
    if (isNewSnapshot && hasLeftNothing(error)) await dropSnapshot(home, runId);
    if (error instanceof DuplicateRun) throw new CliError(error.message, EXIT.rejected);
    throw error;
  }
}

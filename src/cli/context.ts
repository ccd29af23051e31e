import { loadConfig, type Config, type ConfigError } from '../config.ts';
import { homeTrouble, troubleWords } from '../server/index.ts';
import { findRun, RunLookupError, type FoundRun } from '../store/find-run.ts';
import { listAgents } from '../store/listing.ts';
import { CliError, EXIT } from './cli-error.ts';
import { printLine, printProblem, type CliIo } from './io.ts';

/** What every command gets: its process and how to say how it went. */
export interface CommandContext {
  readonly io: CliIo;
  /** Exit code of the command; 0 unless it says otherwise. */
  exit(code: number): void;
}

export function readConfig({ io }: CommandContext): Config {
  return loadConfig({ env: io.env, cwd: io.cwd });
}

/**
 * For commands that only look or stop: a setting that cannot be used must not take the stop button away. It is warned of,
 * with the words that any other command refuses it with, and defaults stand in for it.
 */
export function readConfigToLook({ io }: CommandContext): Config {
  const problems: ConfigError[] = [];
  const config = loadConfig({ env: io.env, cwd: io.cwd, onProblem: (problem) => problems.push(problem) });
  for (const { message } of problems) printProblem(io.stderr, message);
  if (problems.length > 0)
    printProblem(
      io.stderr,
      'Going on with defaults instead. Until this is mended nothing can be started, workers that end included.',
    );
  return config;
}

/** Says on standard error when what runs is not this home's, or looks for it where it no longer is. */
export function warnOfTrouble(context: CommandContext, home: string): void {
  const trouble = homeTrouble(home);
  if (trouble) warn(context, troubleWords(home, trouble));
}

/** For what a person should know and no program should read. */
export function warn({ io }: CommandContext, line: string): void {
  printLine(io.stderr, line);
}

/** The run that an id, or a part of it, means; a CliError lists what there is. */
export async function lookUpRun(config: Config, idOrPart: string): Promise<FoundRun> {
  const found = await findRunOrSay(config, idOrPart);
  if ('problem' in found) throw new CliError(found.problem);
  return found;
}

/** The same, for commands that may still find the run at the server: why there is no file of it. */
export async function findRunOrSay(config: Config, idOrPart: string): Promise<FoundRun | { readonly problem: string }> {
  try {
    return await findRun(config.home.value, idOrPart);
  } catch (error) {
    if (error instanceof RunLookupError) return { problem: error.message };
    throw error;
  }
}

/** What `work` reads of a transcript; a CliError says in one line why it cannot be read. */
export async function readOrSay<Value>(file: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new CliError(
      `The transcript cannot be read: ${unreadable(file, error)}. errand doctor lists what is wrong in this home.`,
      EXIT.failed,
      { cause: error },
    );
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'is missing',
  EACCES: 'may not be read by this user',
  EPERM: 'may not be read by this user',
};

/** What is wrong with a file, its name said once. */
export function unreadable(file: string, error: Error): string {
  const words = UNREADABLE[(error as NodeJS.ErrnoException).code ?? ''];
  if (words !== undefined) return `${file} ${words}`;
  return error.message.includes(file) ? error.message : `${file}: ${error.message}`;
}

/** The agent of a run that an id, its beginning or a part of its description means; the root without a name. */
export async function lookUpAgent(
  config: Config,
  run: Pick<FoundRun, 'runId' | 'transcript'>,
  name: string | undefined,
): Promise<string> {
  if (name === undefined || name === run.runId) return run.runId;
  const { agents } = await listAgents(config.home.value, run.transcript);
  const exact = agents.filter(({ agentId, description }) => agentId === name || description === name);
  const close = agents.filter(({ agentId, description }) => agentId.startsWith(name) || description.includes(name));
  const found = exact.length > 0 ? exact : close;
  const [first] = found;
  if (first !== undefined && found.length === 1) return first.agentId;
  const known = (found.length > 0 ? found : agents).map(({ agentId, description }) => `  ${agentId}  ${description}`);
  const problem = found.length > 1 ? 'may mean several agents' : 'is no agent';
  throw new CliError(`"${name}" ${problem} of run ${run.runId}. Its agents are:\n${known.slice(0, 30).join('\n')}`);
}

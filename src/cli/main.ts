import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, CommanderError } from 'commander';
import { isUnreachable } from '../client.ts';
import { ConfigError } from '../config.ts';
import { NotAFile } from '../store/files.ts';
import { ERRAND_VERSION } from '../version.ts';
import { addCancel } from './cancel.ts';
import { CliError, EXIT } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { addDemo } from './demo.ts';
import { addDoctor } from './doctor.ts';
import { printLine, printProblem, processIo, type CliIo, type OutputStream } from './io.ts';
import { addLogs } from './logs.ts';
import { addModelServer } from './model-server.ts';
import { addPs } from './ps.ts';
import { addRun } from './run.ts';
import { addShow } from './show.ts';
import { addStatus } from './status.ts';
import { addSteer } from './steer.ts';
import { addDown, addUp } from './up.ts';
import { addWatch } from './watch.ts';
import { addWorker } from './worker.ts';

/** Runs one command line; answers its exit code. Never throws and never ends the process. */
export async function main(argv: readonly string[], io: CliIo): Promise<number> {
  let exitCode: number = EXIT.completed;
  const context = { io, exit: (code: number) => (exitCode = code) };
  try {
    await createProgram(context).parseAsync([...argv], { from: 'user' });
    return exitCode;
  } catch (error) {
    return explain(io, error);
  }
}

/** The command line of this process, from its arguments to its exit. */
export async function runProcess(): Promise<void> {
  const io = processIo();
  // Whoever reads may stop reading (`| head -1`): no more to say, and no reason to complain.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) =>
      process.exit(error.code === 'EPIPE' ? EXIT.completed : EXIT.failed),
    );
  }
  const code = await main(process.argv.slice(2), io);
  await Promise.all([flushed(io.stdout), flushed(io.stderr)]);
  process.exit(code);
}

const COMMANDS = [
  ...[addRun, addDemo, addPs, addShow, addWatch, addLogs, addCancel, addSteer],
  ...[addUp, addDown, addStatus, addWorker, addDoctor, addModelServer],
];

function createProgram(context: CommandContext): Command {
  const { io } = context;
  const program = new Command('errand')
    .description('Runs long delegated jobs with AI agents that survive crashes, deploys and reboots.')
    .version(ERRAND_VERSION)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: (text) => io.stderr.write(text) })
    .showHelpAfterError('(--help shows what is valid)');
  for (const add of COMMANDS) add(program, context);
  return program;
}

function explain(io: CliIo, error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.completed : EXIT.usage;
  if (error instanceof CliError) return say(io, error.message, error.exitCode);
  if (error instanceof ConfigError) return sayEach(io, error.message);
  if (isUnreachable(error)) return say(io, error instanceof Error ? error.message : String(error), EXIT.unreachable);
  if (error instanceof NotAFile)
    return say(io, `${error.message}. errand doctor lists what is wrong in this home.`, EXIT.failed);
  const trouble = machineTrouble(error);
  if (trouble !== undefined) return say(io, trouble, EXIT.failed);
  return say(io, `a bug in errand, or something it does not expect: ${stackOf(error)}`, EXIT.failed);
}

const MACHINE_TROUBLE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full',
  EDQUOT: 'The disk quota is used up',
  EROFS: 'The file system is read-only',
  EIO: 'The disk does not work as it should',
};

/** Words for an error that the machine is to blame for, not errand; undefined for any other. */
function machineTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const words = MACHINE_TROUBLE[(error as NodeJS.ErrnoException).code ?? ''];
  return (
    words && `${words} (${error.message}). Mend that and try again; errand doctor says which disk ERRAND_HOME is on.`
  );
}

function say(io: CliIo, message: string, code: number): number {
  printLine(io.stderr, `errand: ${message}`);
  return code;
}

function sayEach(io: CliIo, message: string): number {
  printProblem(io.stderr, message);
  return EXIT.usage;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function flushed(stream: OutputStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

function isThisScript(): boolean {
  const [, script] = process.argv;
  try {
    return script !== undefined && realpathSync(script) === fileURLToPath(import.meta.url);
  } catch {
    return false; // Started in another way than by a file, as by node -e.
  }
}

if (isThisScript()) await runProcess();

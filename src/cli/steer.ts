import type { Command } from 'commander';
import { steer } from '../client.ts';
import { MAX_PROMPT_BYTES, workflowId } from '../protocol.ts';
import { CliError, EXIT } from './cli-error.ts';
import { lookUpAgent, lookUpRun, readConfig, type CommandContext } from './context.ts';
import { printLine } from './io.ts';
import { parseText } from './option-values.ts';
import { openSession, withSession } from './session.ts';

export function addSteer(program: Command, context: CommandContext): void {
  program
    .command('steer')
    .description('add a user message at the next turn of a run, or of one agent of it')
    .argument('<run>', 'id of a run, or enough of it')
    .argument('<message>', 'what to tell it', parseText)
    .option('--agent <id>', 'a sub-agent instead of the root')
    .action((name: string, message: string, options: { agent?: string }) =>
      tell(context, { name, message, ...options }),
    );
}

interface Telling {
  readonly name: string;
  readonly message: string;
  readonly agent?: string;
}

async function tell(context: CommandContext, { name, message, agent }: Telling): Promise<void> {
  assertFits(message);
  const config = readConfig(context);
  const run = await lookUpRun(config, name);
  const id = workflowId(run.runId, await lookUpAgent(config, run, agent));
  const session = await openSession(context, { config });
  const outcome = await withSession(session, ({ temporal }) => steer(temporal.client, id, message));
  if (!outcome.done) throw new CliError(`${id} ${outcome.reason}.`, EXIT.failed);
  printLine(context.io.stdout, `${id} reads it at its next turn`);
}

function assertFits(message: string): void {
  const bytes = Buffer.byteLength(message);
  if (bytes <= MAX_PROMPT_BYTES) return;
  throw new CliError(
    `The message has ${bytes} bytes, at most ${MAX_PROMPT_BYTES} can be taken. ` +
      'Put it in a file of the workspace and name the file in the message.',
  );
}

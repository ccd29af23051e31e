import type { Command } from 'commander';
import { steer } from '../client.ts';
import type { Config } from '../config.ts';
import { MAX_PROMPT_BYTES, workflowId } from '../protocol.ts';
import { CliError, EXIT } from './cli-error.ts';
import { findRunOrSay, lookUpAgent, readConfig, type CommandContext } from './context.ts';
import { printLine } from './io.ts';
import { parseText } from './option-values.ts';
import { assertOwnRun } from './own-run.ts';
import { openSession, withSession } from './session.ts';
import { lookUpUnopened } from './unopened.ts';

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
  const id = await workflowOf(config, name, agent);
  const session = await openSession(context, { config });
  const outcome = await withSession(session, async ({ temporal }) => {
    await assertOwnRun(config, temporal, id);
    return steer(temporal.client, id, message);
  });
  if (!outcome.done) throw new CliError(`${id} ${outcome.reason}.`, EXIT.failed);
  printLine(context.io.stdout, `${id} reads it at its next turn`);
}

// A run that no worker has taken up yet has no files and no sub-agents; only its whole id finds it.
async function workflowOf(config: Config, name: string, agent: string | undefined): Promise<string> {
  const found = await findRunOrSay(config, name);
  if ('problem' in found) return (await lookUpUnopened(config, { name, problem: found.problem })).runId;
  return workflowId(found.runId, await lookUpAgent(config, found, agent));
}

function assertFits(message: string): void {
  const bytes = Buffer.byteLength(message);
  if (bytes <= MAX_PROMPT_BYTES) return;
  throw new CliError(
    `The message has ${bytes} bytes, at most ${MAX_PROMPT_BYTES} can be taken. ` +
      'Put it in a file of the workspace and name the file in the message.',
  );
}

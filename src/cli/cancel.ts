import type { Command } from 'commander';
import { requestCancel, type TalkOutcome } from '../client.ts';
import type { Config } from '../config.ts';
import { workflowId } from '../protocol.ts';
import { loadMeta } from '../store/meta.ts';
import { CliError } from './cli-error.ts';
import { findRunOrSay, lookUpAgent, readConfigToLook, type CommandContext } from './context.ts';
import { printLine } from './io.ts';
import { assertOwnRun } from './own-run.ts';
import { openSession, withSession } from './session.ts';

export function addCancel(program: Command, context: CommandContext): void {
  program
    .command('cancel')
    .description('stop a run and all that belongs to it, or one agent of it')
    .argument('<run>', 'id of a run, or enough of it')
    .option('--agent <id>', 'only this sub-agent and what is below it')
    .action((name: string, options: { agent?: string }) => cancel(context, name, options.agent));
}

async function cancel(context: CommandContext, name: string, agent: string | undefined): Promise<void> {
  const config = readConfigToLook(context);
  const found = await findRunOrSay(config, name);
  if ('problem' in found) return cancelUnopened(context, config, { name, problem: found.problem });
  const { runId, transcript } = found;
  const agentId = await lookUpAgent(config, found, agent);
  const id = workflowId(runId, agentId);
  const { status } = await loadMeta(config.home.value, { runId, agentId, transcript });
  if (status !== 'running') return printLine(context.io.stdout, `${id} had ended: ${status}`);
  say(context, id, await request(context, config, id));
}

// A run that no worker has taken up yet has no files; only its whole id finds it.
async function cancelUnopened(
  context: CommandContext,
  config: Config,
  { name, problem }: { name: string; problem: string },
): Promise<void> {
  const outcome = await request(context, config, name);
  if (!outcome.done && outcome.isUnknown) throw new CliError(problem);
  say(context, name, outcome);
}

async function request(context: CommandContext, config: Config, id: string): Promise<TalkOutcome> {
  const session = await openSession(context, { config });
  return withSession(session, async ({ temporal }) => {
    await assertOwnRun(config, temporal, id);
    return requestCancel(temporal.client, id);
  });
}

function say({ io }: CommandContext, id: string, outcome: TalkOutcome): void {
  printLine(
    io.stdout,
    outcome.done ? `${id} is being cancelled; errand watch tells how it ends` : `${id} ${outcome.reason}`,
  );
}

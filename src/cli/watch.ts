import { stat } from 'node:fs/promises';
import type { Command } from 'commander';
import { findUnopened } from '../client.ts';
import type { Config } from '../config.ts';
import type { AgentStatus } from '../protocol.ts';
import { rootTranscriptFile } from '../store/layout.ts';
import { loadMeta } from '../store/meta.ts';
import { CliError } from './cli-error.ts';
import { findRunOrSay, readConfigToLook, readOrSay, type CommandContext } from './context.ts';
import { announce, followToTheEnd, reportEnded } from './follow/follow-command.ts';
import { assertOwnQueue, assertOwnRun } from './own-run.ts';
import { openSession, withSession } from './session.ts';

export function addWatch(program: Command, context: CommandContext): void {
  program
    .command('watch')
    .description('follow a run that goes on; Ctrl-C asks as with run')
    .argument('<run>', 'id of a run, or enough of it')
    .option('--json', 'one JSON object a line')
    .action((name: string, options: { json?: true }) => watch(context, name, options.json === true));
}

async function watch(context: CommandContext, name: string, json: boolean): Promise<void> {
  const config = readConfigToLook(context);
  const home = config.home.value;
  const found = await findRunOrSay(config, name);
  if ('problem' in found) return watchUnopened(context, { config, name, json, problem: found.problem });
  const { runId, transcript: stem, file } = found;
  const run = { runId, stem, file };
  const ended = await readOrSay(file, () => endingOf(home, run));
  // What has ended is told from the files: no server is needed, and none is started.
  if (ended !== undefined) {
    announce(context, { config, run, json });
    return reportEnded(context, { config, run, json }, ended);
  }
  const session = await openSession(context, { config });
  await withSession(session, async ({ temporal }) => {
    await assertOwnRun(config, temporal, runId);
    announce(context, { config, session, run, json });
    await followToTheEnd(context, { config, session, run, json });
  });
}

/** Undefined while it runs, and when a worker died right after it had made the file: there is nothing in it yet. */
async function endingOf(
  home: string,
  { runId, stem, file }: { readonly runId: string; readonly stem: string; readonly file: string },
): Promise<{ readonly status: AgentStatus; readonly error: string | undefined } | undefined> {
  const { size } = await stat(file);
  if (size === 0) return undefined;
  const { status, error } = await loadMeta(home, { runId, agentId: runId, transcript: stem });
  return status === 'running' ? undefined : { status, error: error ?? undefined };
}

interface Unopened {
  readonly config: Config;
  readonly name: string;
  readonly json: boolean;
  readonly problem: string;
}

async function watchUnopened(context: CommandContext, { config, name, json, problem }: Unopened): Promise<void> {
  const session = await openSession(context, { config });
  await withSession(session, async ({ temporal }) => {
    const found = await findUnopened(temporal.client, name);
    if (found === undefined) throw new CliError(problem);
    assertOwnQueue(config, name, found.queue);
    const { stem } = found;
    const run = { runId: name, stem, file: rootTranscriptFile(config.home.value, stem) };
    announce(context, { config, session, run, json });
    await followToTheEnd(context, { config, session, run, json });
  });
}

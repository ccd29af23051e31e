import type { Command } from 'commander';
import { cancelJob, listOpenJobs } from '../jobs/cancel-job.ts';
import { hasModelAccess } from '../config.ts';
import { homePaths } from '../home.ts';
import { stopServer } from '../server/index.ts';
import { listRuns } from '../store/listing.ts';
import { readConfig, readConfigToLook, warn, type CommandContext } from './context.ts';
import { printLine } from './io.ts';
import { stopModelServer } from './model-server-process.ts';
import { parseWhole } from './option-values.ts';
import { bringUp } from './session.ts';

export function addUp(program: Command, context: CommandContext): void {
  program
    .command('up')
    .description('start the Temporal server and the workers; they go on when the terminal closes')
    .option('--workers <n>', 'how many workers (default: 2)', parseWhole(1, 64))
    .action((options: { workers?: number }) => up(context, options.workers));
}

export function addDown(program: Command, context: CommandContext): void {
  program
    .command('down')
    .description('stop the workers, their bash jobs and the server; runs go on after the next up')
    .option('--keep-jobs', 'leave running bash jobs alone')
    .action((options: { keepJobs?: true }) => down(context, options.keepJobs === true));
}

async function up(context: CommandContext, workers: number | undefined): Promise<void> {
  const config = readConfig(context);
  // A shell without a key has nothing better to offer than what the workers of a run have already.
  const workerEnvironment = hasModelAccess(config) ? context.io.env : undefined;
  const { address, uiUrl } = await bringUp(context, { config, workers, workerEnvironment });
  printLine(context.io.stdout, `Temporal: ${address}`);
  if (uiUrl !== undefined) printLine(context.io.stdout, `Temporal UI: ${uiUrl}`);
  printLine(context.io.stdout, 'Stop all of it: errand down');
}

async function down(context: CommandContext, keepJobs: boolean): Promise<void> {
  const home = readConfigToLook(context).home.value;
  // Workers first: they would start the jobs of a retry again.
  await stopServer({ home, log: (line) => warn(context, line) });
  if (await stopModelServer(home)) warn(context, 'stopped the model simulator');
  if (!keepJobs) await endJobs(context, home);
  const { runs } = await listRuns(home, { limit: 1000 });
  const open = runs.filter(({ meta }) => meta.status === 'running').map(({ runId }) => runId);
  printLine(context.io.stdout, 'Stopped.');
  if (open.length > 0)
    printLine(context.io.stdout, `Not finished, and going on after errand up: ${open.slice(0, 10).join(', ')}`);
}

async function endJobs(context: CommandContext, home: string): Promise<void> {
  const jobs = await listOpenJobs(homePaths(home).journal);
  for (const { folder, command } of jobs) {
    warn(context, `ending the job ${JSON.stringify(command.slice(0, 80))}`);
    await cancelJob(folder);
  }
}

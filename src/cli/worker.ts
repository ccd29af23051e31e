import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { assertOwnHome, serverStatus } from '../server/index.ts';
import { CliError, EXIT } from './cli-error.ts';
import { readConfig, type CommandContext } from './context.ts';

export function addWorker(program: Command, context: CommandContext): void {
  program
    .command('worker')
    .description('one worker in the foreground, for a server that runs already')
    .action(() => worker(context));
}

async function worker(context: CommandContext): Promise<void> {
  const { home, project, temporal } = readConfig(context);
  assertOwnHome(home.value);
  const script = join(project, 'dist', 'worker.js');
  if (!existsSync(script))
    throw new CliError(`${script} is missing: errand is not built. Run "npm run build" in ${project}.`);
  const address =
    temporal.server === 'external' ? undefined : (temporal.address.value ?? (await embeddedAddress(home.value)));
  const env = { ...context.io.env, ...(address !== undefined && { ERRAND_TEMPORAL_ADDRESS: address }) };
  const child = spawn(process.execPath, [script], { env, stdio: 'inherit' });
  // The terminal sends its own signals to the whole group; others are handed on.
  const stop = context.io.onSignals(['SIGTERM', 'SIGINT', 'SIGHUP'], (signal) => {
    if (signal !== 'SIGINT') child.kill(signal);
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  stop();
  context.exit(code ?? EXIT.failed);
}

async function embeddedAddress(home: string): Promise<string> {
  const { instances } = await serverStatus({ home });
  const found = instances.find(({ embedded, running }) => embedded && running)?.address;
  if (found !== undefined) return found;
  throw new CliError('The embedded Temporal server is not running: errand up starts it.', EXIT.unreachable);
}

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { logFile, type Instance } from './instance.ts';
import { openLog } from './log-file.ts';
import { LOOPBACK, type ServerPorts } from './ports.ts';

/** How long closed runs stay visible. The dev server's own default is a day. */
export const RETENTION_DAYS = 30;

// The defaults of a dev server are for trying things out. A run lives on its one shard, whose queue is polled 20 times a
// second at most once a burst is over, so that every step waits 50 ms; and timers, retries included, fire up to a
// second late.
const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': '5000',
  'history.transferProcessorMaxPollHostRPS': '50000',
  'history.timerProcessorMaxTimeShift': '"20ms"',
};

// Survives any kill. A power cut may take the last commits; transcripts and effect journal make that harmless.
const SQLITE_PRAGMAS = ['journal_mode=wal', 'synchronous=1'];

export interface TemporalCommandOptions {
  readonly cli: string;
  readonly instance: Instance;
  readonly ports: ServerPorts;
}

/** Starts the Temporal dev server on the instance's database, listening on loopback only. */
export function spawnTemporal({ cli, instance, ports }: TemporalCommandOptions): ChildProcess {
  const log = openLog(logFile(instance, 'temporal'));
  // The child inherits the mask at the fork: its database is for its owner only, as everything in the home.
  const mask = process.umask(0o077);
  try {
    const stdio: ['ignore', number, number] = ['ignore', log, log];
    return spawn(cli, temporalArguments(instance, ports), { cwd: instance.folder, env: serverEnvironment(), stdio });
  } finally {
    process.umask(mask);
    closeSync(log);
  }
}

/** The version the CLI gives itself, for example 1.9.1. */
export function temporalVersion(cli: string): string {
  const { stdout, error } = spawnSync(cli, ['--version'], {
    encoding: 'utf8',
    timeout: 20_000,
    env: serverEnvironment(),
  });
  const version = /\d+\.\d+\.\d+\S*/.exec(stdout ?? '')?.[0];
  if (version !== undefined) return version;
  throw new Error(
    `${cli} --version did not tell a version (${error?.message ?? JSON.stringify(stdout)}): it is no Temporal CLI.`,
  );
}

function temporalArguments(instance: Instance, ports: ServerPorts): string[] {
  return [
    ...['server', 'start-dev', '--ip', LOOPBACK, '--log-level', 'warn', '--ui-disable-news-fetch'],
    ...['--port', String(ports.grpc), '--ui-port', String(ports.ui)],
    ...['--http-port', String(ports.http), '--metrics-port', String(ports.metrics)],
    ...['--db-filename', instance.database],
    ...SQLITE_PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...Object.entries(DYNAMIC_CONFIG).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
  ];
}

// The server needs no model key, and TEMPORAL_* variables are for clients.
function serverEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ANTHROPIC|TEMPORAL)_/.test(name)));
}

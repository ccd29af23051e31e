import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { loadConfig } from '../../src/config.ts';
import { createInstanceFolders, instanceOf } from '../../src/server/instance.ts';
import type { Instance } from '../../src/server/instance.ts';
import { claimPorts } from '../../src/server/ports.ts';
import type { ServerPorts } from '../../src/server/ports.ts';
import { spawnTemporal } from '../../src/server/temporal-command.ts';
import { commitEnds } from './wal.ts';
import { waitFor } from './wait.ts';

/**
 * A Temporal server of its own, on a port that stays, whose database can be set back to any commit: nothing is ever moved
 * out of its write-ahead log, so cutting the log is what a power cut does. Everything is gone after `close`.
 */
export class RewindableServer {
  readonly address: string;
  readonly #folder: string;
  readonly #instance: Instance;
  readonly #ports: ServerPorts;
  readonly #cli: string;
  #process: ChildProcess | undefined;

  constructor(folder: string, instance: Instance, ports: ServerPorts, cli: string) {
    this.#folder = folder;
    this.#instance = instance;
    this.#ports = ports;
    this.#cli = cli;
    this.address = `127.0.0.1:${ports.grpc}`;
  }

  get #log(): string {
    return `${this.#instance.database}-wal`;
  }

  /** Commits in the database now. */
  commits(): number {
    return commitEnds(readFileSync(this.#log)).length;
  }

  async start(): Promise<void> {
    this.#process = spawnTemporal({ cli: this.#cli, instance: this.#instance, ports: this.#ports });
    await waitFor('the server to answer', () => isHealthy(this.address), 60_000);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /** Kills the server and starts it with only its first commits. */
  async goBackTo(commits: number): Promise<void> {
    await this.kill();
    const ends = commitEnds(readFileSync(this.#log));
    const end = ends[commits - 1];
    if (end === undefined) throw new Error(`the log holds ${ends.length} commits, it cannot be cut to ${commits}`);
    await truncate(this.#log, end);
    // Only an index of the log, made anew from it.
    await rm(`${this.#instance.database}-shm`, { force: true });
    await this.start();
  }

  /** Kills the server and starts it without its last commits. */
  async lose(commits: number): Promise<void> {
    await this.kill();
    await this.goBackTo(this.commits() - commits);
  }

  async close(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function startRewindableServer(): Promise<RewindableServer> {
  const folder = await mkdtemp(join(tmpdir(), 'errand-rewind-'));
  const instance = instanceOf(folder);
  createInstanceFolders(instance);
  const ports = await claimPorts({ file: instance.ports, log: () => undefined });
  const server = new RewindableServer(folder, instance, ports, await cliThatKeepsItsLog(folder));
  await server.start();
  return server;
}

/** The product's own command line, with one setting more. */
async function cliThatKeepsItsLog(folder: string): Promise<string> {
  const cli = loadConfig({ env: process.env }).tools.temporal.value.path;
  if (cli === undefined) throw new Error('there is no Temporal CLI; set ERRAND_TEMPORAL_CLI');
  const file = join(folder, 'temporal');
  await writeFile(file, `#!/bin/sh\nexec '${cli}' "$@" --sqlite-pragma wal_autocheckpoint=0\n`, { mode: 0o700 });
  return file;
}

async function isHealthy(address: string): Promise<boolean> {
  try {
    const connection = await Connection.connect({ address, connectTimeout: 2_000 });
    await connection.workflowService.describeNamespace({ namespace: 'default' }).finally(() => connection.close());
    return true;
  } catch {
    return false; // Not yet; the wait around this says so when it is never.
  }
}

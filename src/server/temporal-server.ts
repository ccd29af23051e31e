import type { ChildProcess } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { prepareDatabase } from './database.ts';
import { writeDatabaseNote, type DatabaseNote } from './database-note.ts';
import { logFile, type Instance } from './instance.ts';
import type { ProcessRecord } from './instance-state.ts';
import { KeptProcess } from './kept-process.ts';
import { lastLines } from './log-file.ts';
import { claimPorts, LOOPBACK, type ServerPorts } from './ports.ts';
import { RETENTION_DAYS, spawnTemporal, temporalVersion } from './temporal-command.ts';

export const NAMESPACE = 'default';
const HEALTHY_WITHIN_MS = 60_000;
const STOP_GRACE_MS = 10_000;

export interface TemporalServerOptions {
  readonly instance: Instance;
  readonly cli: string;
  readonly log: (line: string) => void;
  readonly onChange: () => void;
  /** Called each time it answers; the address is another one if its port had been taken meanwhile. */
  readonly onReady: () => void;
}

/** The embedded Temporal server, kept alive on one database. */
export class TemporalServer {
  readonly #options: TemporalServerOptions;
  readonly #kept: KeptProcess;
  #ports: ServerPorts | undefined;
  #note: DatabaseNote | undefined;

  constructor(options: TemporalServerOptions) {
    this.#options = options;
    this.#kept = new KeptProcess({
      name: 'the Temporal server',
      start: () => this.#start(),
      onChange: options.onChange,
      onDeath: (cause) => options.log(`the Temporal server ${cause}; starting it again`),
    });
  }

  get record(): ProcessRecord {
    return this.#kept.record;
  }

  get ports(): ServerPorts | undefined {
    return this.#ports;
  }

  get address(): string | undefined {
    return this.#ports && `${LOOPBACK}:${this.#ports.grpc}`;
  }

  begin(): void {
    this.#kept.begin();
  }

  async whenReady(): Promise<void> {
    const log = logFile(this.#options.instance, 'temporal');
    const hint = () => `Its log, ${log}, ends:\n${lastLines(log, 3)}`;
    await this.#kept.whenReady({ timeoutMs: HEALTHY_WITHIN_MS, hint });
  }

  async stop(): Promise<void> {
    await this.#kept.stop(STOP_GRACE_MS);
  }

  async #start(): Promise<ChildProcess> {
    const { instance, cli, log } = this.#options;
    this.#note = prepareDatabase({ database: instance.database, version: temporalVersion(cli), log });
    const ports = await claimPorts({ file: instance.ports, log });
    this.#ports = ports;
    const child = spawnTemporal({ cli, instance, ports });
    void this.#watchHealth(child, `${LOOPBACK}:${ports.grpc}`);
    return child;
  }

  // A server that lives but never answers is killed, so that the next life gets its chance.
  async #watchHealth(child: ChildProcess, address: string): Promise<void> {
    const deadline = performance.now() + HEALTHY_WITHIN_MS;
    const isRunning = () => child.exitCode === null && child.signalCode === null && child.pid !== undefined;
    while (isRunning()) {
      const problem = await this.#greet(address);
      if (problem === undefined && isRunning()) return this.#becomeReady(child);
      if (performance.now() > deadline) child.kill('SIGKILL');
      await sleep(20);
    }
  }

  #becomeReady(child: ChildProcess): void {
    this.#kept.markReady(child);
    this.#options.onReady();
  }

  /** Asks for the namespace and sets how long it keeps closed runs, once a database; the reason if it cannot yet. */
  async #greet(address: string): Promise<string | undefined> {
    try {
      // A first connection that is refused would be tried again only after a second.
      await whenListening(address);
      const connection = await Connection.connect({ address, connectTimeout: 2000 });
      await this.#setUpNamespace(connection).finally(() => connection.close());
      return undefined;
    } catch (error) {
      return String(error);
    }
  }

  // Once only: who changes the retention by hand later keeps his choice.
  async #setUpNamespace({ workflowService }: Connection): Promise<void> {
    await workflowService.describeNamespace({ namespace: NAMESPACE });
    if (this.#note === undefined || this.#note.retentionSet) return;
    const workflowExecutionRetentionTtl = msToTs(RETENTION_DAYS * 24 * 3600_000);
    await workflowService.updateNamespace({ namespace: NAMESPACE, config: { workflowExecutionRetentionTtl } });
    this.#note = { ...this.#note, retentionSet: true };
    writeDatabaseNote(this.#options.instance.database, this.#note);
  }
}

function whenListening(address: string): Promise<void> {
  const [host, port] = address.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) }, () => resolve(void socket.destroy()));
    socket.once('error', reject);
  });
}

import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync } from 'node:fs';
import { homeId } from '../home.ts';
import { logFile, type Instance } from './instance.ts';
import type { WorkerRecord } from './instance-state.ts';
import { KeptProcess } from './kept-process.ts';
import { lastLines, openLog } from './log-file.ts';
import { SilenceWatch } from './silence-watch.ts';
import { workerEnvironment, type Environment } from './worker-environment.ts';

const READY_WITHIN_MS = 60_000;

/** What workers are to be: of which build, and with which environment. */
export interface WorkerPlan {
  readonly command: readonly string[];
  readonly buildId: string;
  readonly environment: Environment;
  /** Address of the embedded server, if that is the one they work for. */
  readonly embeddedAddress?: string;
}

export interface WorkerProcessOptions {
  readonly instance: Instance;
  readonly name: string;
  readonly plan: WorkerPlan;
  readonly log: (line: string) => void;
  readonly onChange: () => void;
  readonly onDeath: (death: { identity: string; cause: string }) => void;
}

/**
 * One worker, kept alive. It says `ready` over its channel once it polls, `alive` every few seconds, and may say `draining`
 * once it no longer polls. One that falls silent is killed: what it held is told to the server like any other death.
 */
export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #kept: KeptProcess;
  #identity = '';
  #isPolling = true;

  constructor(options: WorkerProcessOptions) {
    this.#options = options;
    this.#kept = new KeptProcess({
      name: `worker ${options.name}`,
      start: () => Promise.resolve(this.#start()),
      onChange: options.onChange,
      onDeath: (cause) => options.onDeath({ identity: this.#identity, cause }),
    });
  }

  get record(): WorkerRecord {
    const { name, plan } = this.#options;
    return { ...this.#kept.record, name, identity: this.#identity, buildId: plan.buildId };
  }

  get isPolling(): boolean {
    return this.#isPolling && this.#kept.record.phase !== 'stopped';
  }

  begin(): void {
    this.#kept.begin();
  }

  async whenReady(): Promise<void> {
    const log = logFile(this.#options.instance, this.#logName);
    const hint = () => `Its log, ${log}, ends:\n${lastLines(log, 5)}`;
    await this.#kept.whenReady({ timeoutMs: READY_WITHIN_MS, hint });
  }

  async stop(graceMs: number): Promise<void> {
    await this.#kept.stop(graceMs);
  }

  get #logName(): string {
    return `worker-${this.#options.name}`;
  }

  #start(): ChildProcess {
    const { instance, name, plan } = this.#options;
    const [program = process.execPath, ...args] = plan.command;
    this.#isPolling = true;
    this.#identity = `errand-${homeId(instance.home)}-${name}-${randomBytes(4).toString('hex')}`;
    const variables = { home: instance.home, name, identity: this.#identity, embeddedAddress: plan.embeddedAddress };
    const env = workerEnvironment(plan.environment, variables);
    const log = openLog(logFile(instance, this.#logName));
    try {
      const child = spawn(program, args, { cwd: instance.folder, env, stdio: ['ignore', log, log, 'ipc'] });
      const silence = new SilenceWatch((silentMs) => this.#endSilent(child, silentMs));
      child.on('message', (message) => this.#hear(child, message, silence));
      child.once('exit', () => silence.stop());
      return child;
    } finally {
      closeSync(log);
    }
  }

  #hear(child: ChildProcess, message: unknown, silence: SilenceWatch): void {
    const { type, everyMs } = (message ?? {}) as { type?: unknown; everyMs?: unknown };
    if (type === 'ready') this.#kept.markReady(child);
    if (type === 'alive' && typeof everyMs === 'number') silence.hear(everyMs);
    if (type === 'draining') this.#isPolling = false;
  }

  #endSilent(child: ChildProcess, silentMs: number): void {
    const { name, log } = this.#options;
    log(`worker ${name} has said nothing for ${silentMs / 1000} s although it runs: it is killed and started again`);
    child.kill('SIGKILL');
  }
}

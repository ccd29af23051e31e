import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Client } from '@temporalio/client';
import { connect, newRunId, startRun, type TemporalClient } from '../src/client.ts';
import { loadConfig } from '../src/config.ts';
import { rootPolicy } from '../src/policy/defaults.ts';
import { ensureServer, stopServer } from '../src/server/index.ts';
import { startSimulator, type Simulator } from '../src/simulator/index.ts';

const PROJECT = resolve(import.meta.dirname, '..');

export interface BenchWorker {
  readonly process: ChildProcess;
  readonly identity: string;
  readonly startMs: number;
}

/** A home, an embedded server, a model simulator and worker processes for one benchmark; gone after `close`. */
export class BenchHome {
  readonly home: string;
  readonly workers = new Set<BenchWorker>();
  readonly address: string;
  readonly #temporal: TemporalClient;
  readonly #simulator: Simulator;
  readonly #environment: NodeJS.ProcessEnv;

  private constructor(home: string, address: string, temporal: TemporalClient, simulator: Simulator) {
    this.home = home;
    this.address = address;
    this.#temporal = temporal;
    this.#simulator = simulator;
    this.#environment = {
      ...process.env,
      ERRAND_HOME: home,
      ERRAND_TEMPORAL_ADDRESS: address,
      ANTHROPIC_BASE_URL: simulator.url,
      ANTHROPIC_API_KEY: 'bench',
    };
  }

  static async open(): Promise<BenchHome> {
    const home = mkdtempSync(join(tmpdir(), 'errand-bench-'));
    mkdirSync(join(home, 'workspace'));
    const { address } = await ensureServer({ home, workers: 0, log: () => undefined });
    const settings = loadConfig({ env: { ...process.env, ERRAND_TEMPORAL_ADDRESS: address } }).temporal;
    return new BenchHome(home, address, await connect(settings), await startSimulator({}));
  }

  get client(): Client {
    return this.#temporal.client;
  }

  get environment(): NodeJS.ProcessEnv {
    return this.#environment;
  }

  /** Starts a worker and waits until it polls. */
  async startWorker(): Promise<BenchWorker> {
    const identity = `bench-${randomUUID().slice(0, 8)}`;
    const startedMs = Date.now();
    const child = spawn(process.execPath, [join(PROJECT, 'dist/worker.js')], {
      env: { ...this.#environment, ERRAND_WORKER_IDENTITY: identity },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await once(child, 'message');
    const worker = { process: child, identity, startMs: Date.now() - startedMs };
    this.workers.add(worker);
    return worker;
  }

  async endWorker(worker: BenchWorker, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.workers.delete(worker);
    if (worker.process.exitCode !== null || worker.process.signalCode !== null) return;
    const ended = once(worker.process, 'exit');
    worker.process.kill(signal);
    await ended;
  }

  /** Starts a run and answers its workflow id. */
  async run(prompt: string): Promise<string> {
    const workspace = join(this.home, 'workspace');
    const { runId } = await startRun(this.#temporal, {
      home: this.home,
      runId: newRunId('bench'),
      prompt,
      workspace,
      model: 'sim-1',
      policy: rootPolicy({ workspace, models: ['sim-1'], approvals: 'deny' }),
      outageMs: 3600_000,
      warn: () => undefined,
    });
    return runId;
  }

  async close(): Promise<void> {
    await Promise.all([...this.workers].map((worker) => this.endWorker(worker)));
    await this.#simulator.close();
    await this.#temporal.close();
    await stopServer({ home: this.home, log: () => undefined });
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Looks every few milliseconds until a value is there. */
export async function until<T>(what: string, look: () => Promise<T | undefined>, timeoutMs = 60_000): Promise<T> {
  for (const deadline = Date.now() + timeoutMs; ;) {
    const value = await look();
    if (value !== undefined) return value;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle) - 1] ?? 0)) / 2;
}

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { connect, newRunId, startRun } from '../../src/client.ts';
import type { TemporalClient } from '../../src/client.ts';
import { loadConfig } from '../../src/config.ts';
import { homeId } from '../../src/home.ts';
import { modelServerOf } from '../../src/model-server-id.ts';
import { rootPolicy } from '../../src/policy/defaults.ts';
import type { RootPolicyOptions } from '../../src/policy/defaults.ts';
import { taskQueue, workflowId } from '../../src/protocol.ts';
import type { AgentResult } from '../../src/protocol.ts';
import { startSimulator } from '../../src/simulator/index.ts';
import type { Simulator, SimulatorOptions } from '../../src/simulator/index.ts';
import { transcriptFile } from '../../src/store/layout.ts';
import { listAgents } from '../../src/store/listing.ts';
import { readTranscript } from '../../src/store/read.ts';
import { historiesOf, replayProblems } from './replay.ts';
import type { KeptHistory } from './replay.ts';
import { processesIn } from './processes.ts';
import { waitFor } from './wait.ts';

const PROJECT = resolve(import.meta.dirname, '../..');

export interface Worker {
  readonly process: ChildProcess;
  readonly identity: string;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export interface Run {
  readonly runId: string;
  readonly stem: string;
  readonly handle: WorkflowHandle;
  result(): Promise<AgentResult>;
  child(agentId: string): WorkflowHandle;
}

export interface RunOptions extends Partial<RootPolicyOptions> {
  readonly historyEvents?: number;
  readonly workspace?: string;
  readonly id?: string;
  readonly outageMs?: number;
  /** Default: the one of this home's workers; null: none, as an older build starts runs. */
  readonly modelServer?: string | null;
}

/**
 * A home of its own on the server that the test run shares: own task queue, own workers as real processes, own model
 * simulator, own workspace. Everything is gone after `close`.
 */
export class Harness {
  readonly home: string;
  readonly workspace: string;
  readonly simulator: Simulator;
  readonly temporal: TemporalClient;
  readonly workers: Worker[] = [];
  readonly #started: string[] = [];
  readonly #folder: string;
  #queue: string | undefined;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(folder: string, simulator: Simulator, temporal: TemporalClient, environment: NodeJS.ProcessEnv) {
    this.#folder = folder;
    this.home = join(folder, 'home');
    this.workspace = join(folder, 'workspace');
    this.simulator = simulator;
    this.temporal = temporal;
    this.#environment = environment;
  }

  get client(): Client {
    return this.temporal.client;
  }

  get environment(): NodeJS.ProcessEnv {
    return this.#environment;
  }

  /** Starts a worker process, of this build unless told otherwise, and waits until it polls. */
  async startWorker(more: NodeJS.ProcessEnv = {}, dist: string = join(PROJECT, 'dist')): Promise<Worker> {
    const identity = `test-worker-${this.workers.length + 1}-${process.pid}-${Date.now()}`;
    const child = spawn(process.execPath, [join(dist, 'worker.js')], {
      env: { ...this.#environment, ERRAND_WORKER_IDENTITY: identity, ...more },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let errors = '';
    child.stderr?.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4000)));
    let isReady = false;
    child.on('message', () => (isReady = true));
    await waitFor(`worker ${identity} to be ready`, () => {
      if (child.exitCode !== null) throw new Error(`worker ended with ${child.exitCode}: ${errors}`);
      return isReady;
    });
    const worker: Worker = { process: child, identity, kill: (signal = 'SIGKILL') => end(child, signal) };
    this.workers.push(worker);
    return worker;
  }

  async run(prompt: string, options: RunOptions = {}): Promise<Run> {
    const { historyEvents, id, outageMs = 3600_000, workspace = this.workspace, ...more } = options;
    const { modelServer = modelServerOf(this.#environment), ...policy } = more;
    const runId = id ?? newRunId(prompt.replace(/\[\[.*\]\]/g, '').slice(0, 40) || 'test');
    const { stem } = await startRun(this.temporal, {
      home: this.home,
      runId,
      prompt,
      workspace,
      model: 'sim-1',
      ...(modelServer !== null && { modelServer }),
      policy: rootPolicy({ workspace, models: ['sim-1'], approvals: 'deny', ...policy }),
      outageMs,
      ...(historyEvents !== undefined && { historyEvents }),
      warn: () => undefined,
    });
    this.#started.push(runId);
    // Kept, since a test may take the home away before the histories are looked at.
    this.#queue = taskQueue(homeId(this.home));
    return this.runOf(runId, stem);
  }

  /** A run that was started some other way. */
  runOf(runId: string, stem: string): Run {
    const handle = this.client.workflow.getHandle(runId);
    return {
      runId,
      stem,
      handle,
      result: () => handle.result() as Promise<AgentResult>,
      child: (agentId) => this.client.workflow.getHandle(workflowId(runId, agentId)),
    };
  }

  /** What a transcript holds now; nothing before the agent has opened. */
  async records(run: Pick<Run, 'runId' | 'stem'>, agentId: string = run.runId) {
    const file = transcriptFile(this.home, { runId: run.runId, agentId, transcript: run.stem });
    return existsSync(file) ? (await readTranscript(file)).records : [];
  }

  /** The same of every agent that the run has so far. */
  async allRecords(run: Pick<Run, 'runId' | 'stem'>) {
    const { agents } = await listAgents(this.home, run.stem);
    return (await Promise.all(agents.map(({ agentId }) => this.records(run, agentId)))).flat();
  }

  async write(path: string, content: string): Promise<string> {
    const file = join(this.workspace, path);
    await mkdir(resolve(file, '..'), { recursive: true });
    await writeFile(file, content);
    return file;
  }

  /** Every history of this home so far: agents at every level, each of their runs. */
  histories(): Promise<readonly KeptHistory[]> {
    return historiesOf(this.client, this.#queue ?? taskQueue(homeId(this.home)), this.#started);
  }

  /** Processes that work in this workspace, by a part of their command line. */
  processesIn(text: string): number[] {
    return processesIn(this.workspace, text);
  }

  /**
   * Ends everything. Each history of this home is replayed first: one that the built code would not write again fails
   * the test. `withoutReplay` says why that cannot be done, when its server is gone for example.
   */
  async close({ withoutReplay }: { withoutReplay?: string } = {}): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.kill('SIGKILL')));
    try {
      if (withoutReplay === undefined) await this.#assertReplays();
      else console.error(`histories are not replayed: ${withoutReplay}`);
    } finally {
      await this.simulator.close();
      await this.temporal.close();
      await rm(this.#folder, { recursive: true, force: true });
    }
  }

  async #assertReplays(): Promise<void> {
    const problems = await replayProblems(await this.histories());
    if (problems.length === 0) return;
    throw new Error(
      `promise 10: these histories do not replay on the workflow code that wrote them:\n${problems.join('\n')}`,
    );
  }
}

export async function createHarness(
  options: {
    workers?: number;
    simulator?: SimulatorOptions;
    config?: string;
    env?: NodeJS.ProcessEnv;
    /** Of the Temporal server; missing: the one that the test run shares. */
    address?: string;
  } = {},
): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'errand-test-'));
  await mkdir(join(folder, 'home'), { mode: 0o700 });
  await mkdir(join(folder, 'workspace'));
  if (options.config !== undefined) await writeFile(join(folder, 'home/config.yaml'), options.config);
  const simulator = await startSimulator({ ...options.simulator });
  const environment: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    // Named outright, since a worker of another tree (an older build) has no list of what set-up found here.
    ERRAND_BWRAP: loadConfig({ env: process.env }).tools.bwrap.value.path,
    ERRAND_HOME: join(folder, 'home'),
    TEMPORAL_ADDRESS: options.address ?? (await sharedAddress()),
    ANTHROPIC_BASE_URL: simulator.url,
    ANTHROPIC_API_KEY: 'sk-test-secret-0123456789',
    ERRAND_MODEL: 'sim-1',
    ...options.env,
  };
  const temporal = await connect(loadConfig({ env: environment }).temporal);
  const harness = new Harness(folder, simulator, temporal, environment);
  for (let i = 0; i < (options.workers ?? 1); i++) await harness.startWorker();
  return harness;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await gone;
}

/** Imported where it is needed: vitest cannot be loaded outside a test run, and scripts use this file too. */
async function sharedAddress(): Promise<string> {
  const { inject } = await import('vitest');
  return inject('temporalAddress');
}

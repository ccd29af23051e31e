import type { Instance } from './instance.ts';
import type { WorkerRecord } from './instance-state.ts';
import { waitUntil } from './wait.ts';
import { environmentDigest } from './worker-environment.ts';
import { WorkerProcess, type WorkerPlan, type WorkerProcessOptions } from './worker-process.ts';

/** The plan and how many. */
export interface WantedWorkers extends WorkerPlan {
  readonly count: number;
}

export interface WorkerPoolOptions {
  readonly instance: Instance;
  readonly graceMs: number;
  readonly log: (line: string) => void;
  readonly onChange: () => void;
  readonly onDeath: WorkerProcessOptions['onDeath'];
}

/** The instance's workers, all of one build and one environment, but for the moments of a hand-over. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #leaving = new Set<WorkerProcess>();
  #current: WorkerProcess[] = [];
  #wanted: WantedWorkers | undefined;
  #isClosed = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  get records(): WorkerRecord[] {
    return [...this.#current, ...this.#leaving].map((worker) => worker.record);
  }

  get wanted(): WantedWorkers | undefined {
    return this.#wanted;
  }

  /**
   * Resolves once exactly the wanted workers are ready and no other one takes work. Workers of another build or
   * environment go on until their successors are ready; if those do not get ready they stay, and this rejects.
   */
  async ensure(wanted: WantedWorkers, log: (line: string) => void): Promise<void> {
    const known = this.#wanted;
    if (known === undefined) return this.#startFirst(wanted);
    const reason = reasonToReplace(known, wanted);
    if (reason !== undefined) return this.#handOver(wanted, () => log(`workers restarted: ${reason}`));
    await this.#resize(wanted);
  }

  /** Ends all workers, for good: whoever is about to ask for more gets an error. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    for (const worker of this.#current) void this.#retire(worker);
    this.#current = [];
    await waitUntil(() => this.#leaving.size === 0, { timeoutMs: this.#options.graceMs + 5_000 });
  }

  async #startFirst(wanted: WantedWorkers): Promise<void> {
    this.#wanted = wanted;
    await this.#resize(wanted);
  }

  async #handOver(wanted: WantedWorkers, announce: () => void): Promise<void> {
    const successors = this.#create(wanted, 0);
    const predecessors = this.#current;
    this.#current = [...predecessors, ...successors];
    try {
      await Promise.all(successors.map((worker) => worker.whenReady()));
    } catch (error) {
      this.#current = predecessors;
      for (const worker of successors) void this.#retire(worker);
      throw error;
    }
    this.#current = successors;
    this.#wanted = wanted;
    await Promise.all(predecessors.map((worker) => this.#retire(worker)));
    announce();
  }

  async #resize(wanted: WantedWorkers): Promise<void> {
    this.#wanted = wanted;
    const surplus = this.#current.splice(wanted.count);
    this.#current.push(...this.#create(wanted, this.#current.length));
    await Promise.all([
      ...this.#current.map((worker) => worker.whenReady()),
      ...surplus.map((one) => this.#retire(one)),
    ]);
  }

  #create(wanted: WantedWorkers, from: number): WorkerProcess[] {
    if (this.#isClosed) throw new Error('the workers are being stopped');
    const { instance, log, onChange, onDeath } = this.#options;
    const names = Array.from({ length: Math.max(0, wanted.count - from) }, (_, index) => `w${from + index + 1}`);
    const workers = names.map((name) => new WorkerProcess({ instance, name, plan: wanted, log, onChange, onDeath }));
    for (const worker of workers) worker.begin();
    return workers;
  }

  /** Resolves once the worker takes no more work; it may go on for a while with what it has. */
  async #retire(worker: WorkerProcess): Promise<void> {
    this.#leaving.add(worker);
    void worker.stop(this.#options.graceMs).then(() => {
      this.#leaving.delete(worker);
      this.#options.onChange();
    });
    await waitUntil(() => !worker.isPolling, { timeoutMs: this.#options.graceMs + 5_000 });
  }
}

function reasonToReplace(known: WantedWorkers, wanted: WantedWorkers): string | undefined {
  if (known.buildId !== wanted.buildId) return `build ${known.buildId} -> ${wanted.buildId}`;
  if (JSON.stringify(known.command) !== JSON.stringify(wanted.command))
    return 'started by another Node or from another copy of errand';
  if (environmentDigest(known.environment) !== environmentDigest(wanted.environment)) return 'changed environment';
  if (known.embeddedAddress !== wanted.embeddedAddress) return `the server is now at ${wanted.embeddedAddress}`;
  return undefined;
}

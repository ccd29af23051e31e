import { isAlive, type ProcessIdentity } from '../process-identity.ts';
import type { WorkerRecord } from './instance-state.ts';
import { stopProcesses } from './leftovers.ts';
import { waitUntil } from './wait.ts';

export interface LeftoverWorkersOptions {
  readonly workers: readonly WorkerRecord[];
  /** How long they may finish what they do. */
  readonly graceMs: number;
  readonly log: (line: string) => void;
  /** Called once for each that is gone, also for those that died before anybody looked. */
  readonly onGone: (worker: WorkerRecord) => void;
}

/** A worker without an open model call ends within a fraction of this: commands are handed over at once. */
const IDLE_ENDS_WITHIN_MS = 1_000;

/** Workers whose supervisor was killed. They are told to end, and may take their time for it while others work already. */
export class LeftoverWorkers {
  readonly #workers: readonly WorkerRecord[];
  readonly #ends: Promise<unknown>;

  constructor(options: LeftoverWorkersOptions) {
    this.#workers = options.workers;
    const { length } = this.records;
    if (length > 0) options.log(`stopping ${length} workers whose supervisor was killed`);
    this.#ends = Promise.all(options.workers.map((worker) => end(worker, options)));
  }

  /** Those that still run. */
  get records(): WorkerRecord[] {
    return this.#workers.filter(({ process }) => process && isAlive(process)).map(asDraining);
  }

  /** Resolves once only workers with something to finish are left. */
  async whenHandedOver(): Promise<void> {
    await waitUntil(() => this.records.length === 0, { timeoutMs: IDLE_ENDS_WITHIN_MS });
  }

  /** Resolves once none is left, by SIGKILL after their time. */
  async whenGone(): Promise<void> {
    await this.#ends;
  }
}

async function end(worker: WorkerRecord, { graceMs, log, onGone }: LeftoverWorkersOptions): Promise<void> {
  try {
    await stopProcesses(livingOf(worker), graceMs);
    onGone(worker);
  } catch (error) {
    log(error instanceof Error ? error.message : String(error));
  }
}

function livingOf({ process }: WorkerRecord): ProcessIdentity[] {
  return process && isAlive(process) ? [process] : [];
}

function asDraining(worker: WorkerRecord): WorkerRecord {
  return { ...worker, phase: 'draining' };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { requestCancel, steer } from '../../src/client.ts';
import type { JobRun } from './run.ts';
import type { World } from './world.ts';

/** What a person did to a job while processes died. */
export interface Doings {
  /** When it was asked to stop; undefined: never, or it had ended before. */
  readonly cancelledMs?: number;
  /** A message for its root, and what the sender was told. */
  readonly message: string;
  readonly answer: 'taken' | 'refused' | 'unknown';
}

const CANCEL_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 15_000;
const AGAIN_AFTER_MS = 200;

/** People who know nothing of the deaths: each job gets a message on its way, and those of some rounds are cancelled. */
export class People {
  readonly #world: World;
  readonly #cancelledMs = new Map<JobRun, number>();
  readonly #answers = new Map<JobRun, Doings['answer']>();
  readonly #pending: Promise<void>[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  /** Sends the job's message after a while. */
  tell(run: JobRun, afterMs: number): void {
    this.#pending.push(this.#tell(run, afterMs));
  }

  /** Asks the job to stop, again and again while the server is away. */
  cancel(run: JobRun): void {
    this.#cancelledMs.set(run, Date.now());
    this.#pending.push(this.#cancel(run));
  }

  isCancelled(run: JobRun): boolean {
    return this.#cancelledMs.has(run);
  }

  doings(run: JobRun): Doings {
    const cancelledMs = this.#cancelledMs.get(run);
    return {
      ...(cancelledMs !== undefined && { cancelledMs }),
      message: messageFor(run),
      answer: this.#answers.get(run) ?? 'unknown',
    };
  }

  /** Until everybody has an answer. Who waits for one of a server that was killed never gets it. */
  async settled(): Promise<void> {
    await Promise.race([Promise.all(this.#pending), sleep(ANSWER_WITHIN_MS)]);
  }

  async #tell(run: JobRun, afterMs: number): Promise<void> {
    await sleep(afterMs);
    try {
      const outcome = await steer(this.#world.temporal.client, run.runId, messageFor(run));
      if (outcome.done) this.#answers.set(run, 'taken');
      else if (outcome.reason.startsWith('refused')) this.#answers.set(run, 'refused');
    } catch {
      // The server died over it: whether the message came in is not known.
    }
  }

  async #cancel(run: JobRun): Promise<void> {
    for (const deadline = Date.now() + CANCEL_WITHIN_MS; Date.now() < deadline; await sleep(AGAIN_AFTER_MS)) {
      try {
        const outcome = await requestCancel(this.#world.temporal.client, run.runId);
        if (!outcome.done) this.#cancelledMs.delete(run);
        return;
      } catch {
        // The server is away.
      }
    }
    // It counts as cancelled all the same: the checks will say that it was not.
  }
}

function messageFor({ job }: JobRun): string {
  return `By the way, this is for ${job} only.`;
}

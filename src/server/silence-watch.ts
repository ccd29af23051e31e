/** So many words in a row must be missing: a machine that is only slow gets behind by a few. */
const MISSED_WORDS = 12;

/**
 * Notices that a process which says regularly that it is alive has fallen silent: it has a pid, but nothing turns in it
 * any more. Counts beats of its own timer, which stands still whenever this process does, as on a laptop that sleeps.
 */
export class SilenceWatch {
  readonly #onSilent: (silentMs: number) => void;
  #timer: NodeJS.Timeout | undefined;
  #missed = 0;

  constructor(onSilent: (silentMs: number) => void) {
    this.#onSilent = onSilent;
  }

  /** A word, with the time until the next one. Who never says one, as workers of an earlier build, is never silent. */
  hear(everyMs: number): void {
    this.#missed = 0;
    this.#timer ??= setInterval(() => this.#miss(everyMs), everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #miss(everyMs: number): void {
    this.#missed += 1;
    if (this.#missed < MISSED_WORDS) return;
    this.stop();
    this.#onSilent(this.#missed * everyMs);
  }
}

/**
 * A gap this long between two looks means that the process may have been stopped or its machine suspended. Together with
 * the age of the last beat it stays below the heartbeat time-out of 10 s: a shorter stop has cost nobody the attempt.
 */
const GAP_MS = 5_000;

/** Counts how often this process may have slept; whoever acts compares the count with the one it last knew. */
export interface SleepWatch {
  /** To be called at least every two seconds. */
  look(): void;
  count(): number;
}

/** The clocks to go by: the first never jumps but may stand still while the machine sleeps, the second does the reverse. */
const CLOCKS = [() => performance.now(), () => Date.now()] as const;

export function createSleepWatch(clocks: readonly (() => number)[] = CLOCKS): SleepWatch {
  let last = clocks.map((now) => now());
  let sleeps = 0;
  const look = () => {
    const current = clocks.map((now) => now());
    if (current.some((ms, index) => Math.abs(ms - (last[index] ?? ms)) > GAP_MS)) sleeps += 1;
    last = current;
  };
  return {
    look,
    count: () => {
      look();
      return sleeps;
    },
  };
}

import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Default 25. */
  readonly everyMs?: number;
}

/** Looks again and again until the condition holds (true) or the time is over (false). */
export async function waitUntil(condition: () => boolean, { timeoutMs, everyMs = 25 }: WaitOptions): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() >= deadline) return false;
    await sleep(everyMs);
  }
  return true;
}

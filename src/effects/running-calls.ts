/** Thrown when the server no longer waits for this attempt: it did nothing and must write nothing. */
export class StaleAttemptError extends Error {
  override readonly name = 'StaleAttemptError';
}

/**
 * Runs a call's work once at a time within this process: a laptop that wakes up can have two attempts of one activity
 * side by side. The second waits for the first and shares its result; if the first left without one, it goes on itself.
 */
export async function runAlone<Result>(key: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  for (let first = running.get(key); first !== undefined; first = running.get(key)) {
    const joined = await waitFor(first, signal);
    // Only work under the same key is stored there, so it gives the same kind of result.
    if (joined.done) return joined.result as Result;
  }
  const mine = work();
  running.set(key, mine);
  try {
    return await mine;
  } finally {
    running.delete(key);
  }
}

const running = new Map<string, Promise<unknown>>();

type Joined = { readonly done: true; readonly result: unknown } | { readonly done: false };

async function waitFor(first: Promise<unknown>, signal: AbortSignal): Promise<Joined> {
  const settled = first.then(
    (result): Joined => ({ done: true, result }),
    // The first attempt's trouble (stale, detached, full disk) is its own to report.
    (): Joined => ({ done: false }),
  );
  return Promise.race([settled, rejectOnAbort(signal)]);
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

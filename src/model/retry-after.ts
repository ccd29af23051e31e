/** A server that names a later time than this is not believed. */
const LONGEST_WAIT_MS = 3_600_000;

const FIRST_WAIT_MS = 1000;
const LONGEST_BACKOFF_MS = 60_000;

interface HeaderReader {
  get(name: string): string | null;
}

/** When the server wants to be asked again; `retry-after-ms`, or `retry-after` in seconds or as an HTTP date. */
export function retryAfterOf(headers: HeaderReader, nowMs = Date.now()): number | undefined {
  const wait = fromMs(headers.get('retry-after-ms')) ?? fromHeader(headers.get('retry-after'), nowMs);
  // Now, or a time gone by, says nothing about when to ask: the usual wait is better than none.
  return wait === undefined || wait <= 0 ? undefined : Math.min(Math.ceil(wait), LONGEST_WAIT_MS);
}

/** Wait before the next attempt (`attempt` counts from 1), spread so that many agents do not come back in step. */
export function retryDelay(attempt: number, retryAfterMs: number | undefined, random = Math.random): number {
  if (retryAfterMs !== undefined) return Math.round(retryAfterMs + random() * Math.min(retryAfterMs / 4, 10_000));
  const backoff = Math.min(FIRST_WAIT_MS * 2 ** Math.min(Math.max(attempt, 1) - 1, 30), LONGEST_BACKOFF_MS);
  return Math.round(backoff * (0.5 + random() / 2));
}

function fromMs(value: string | null): number | undefined {
  return value !== null && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}

function fromHeader(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  const seconds = fromMs(value);
  if (seconds !== undefined) return seconds * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : date - nowMs;
}

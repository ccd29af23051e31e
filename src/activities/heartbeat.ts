import { Context } from '@temporalio/activity';
import { createSleepWatch } from './sleep-watch.ts';
import { workerShutdown } from '../failures.ts';
import type { ActivityDeps } from './deps.ts';

/** Well below the heartbeat time-out of 10 s, and as often as the worker's throttle lets beats through. */
const BEAT_EVERY_MS = 2_000;

/** Progress details are for people: one line. */
const MAX_DETAIL_CHARS = 500;

/** What the activity tells about itself while it runs. */
export interface Pulse {
  readonly signal: AbortSignal;
  progress(line: string): void;
  /** How often the process may have slept since the attempt began. */
  sleeps(): number;
}

/**
 * Beats by timer for the length of a call, also when the work itself is silent: without beats a cancellation is never
 * felt and a long call counts as dead.
 */
export async function withHeartbeat<T>(
  { handOver }: Pick<ActivityDeps, 'handOver'>,
  work: (pulse: Pulse) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const watch = createSleepWatch();
  let detail = '';
  const timer = setInterval(() => {
    watch.look();
    context.heartbeat(detail);
  }, BEAT_EVERY_MS);
  const progress = (line: string) => {
    detail = line.slice(0, MAX_DETAIL_CHARS);
  };
  const signal = AbortSignal.any([context.cancellationSignal, handOver]);
  try {
    return await work({ signal, progress, sleeps: () => watch.count() });
  } catch (error) {
    // An aborted request or a killed process must not look like a failure of its own.
    if (context.cancellationSignal.aborted) throw stopReason(context);
    throw handOver.aborted ? workerShutdown() : error;
  } finally {
    clearInterval(timer);
  }
}

/** The end of a worker is not a cancellation: the attempt is handed over, without the pause of a failed one. */
function stopReason({ cancellationDetails, cancellationSignal }: Context): unknown {
  return cancellationDetails?.workerShutdown ? workerShutdown() : cancellationSignal.reason;
}

/** Whether the workflow asked for the stop; a worker's shutdown and a lost attempt also abort the signal. */
export function isCancelRequested(): boolean {
  return Context.current().cancellationDetails?.cancelRequested === true;
}

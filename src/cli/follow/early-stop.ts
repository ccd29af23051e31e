import { CliError, EXIT } from '../cli-error.ts';
import type { CliIo } from '../io.ts';

/** Signals from before the run is followed: the first one is heeded where nothing can be left half done. */
export interface EarlyStop {
  /** The signal that came, if one did. */
  readonly signal: NodeJS.Signals | undefined;
  /** The work's result, or a CliError as soon as somebody wants to stop. */
  unlessStopped<Value>(work: Promise<Value>): Promise<Value>;
  /** The same for work that should not be left alone: only a second signal leaves it. */
  unlessInsisted<Value>(work: Promise<Value>, hint: string): Promise<Value>;
  close(): void;
}

/** Listens from now on, until closed. */
export function stopEarly(io: CliIo): EarlyStop {
  const signals: NodeJS.Signals[] = [];
  const listeners = new Set<() => void>();
  const close = io.onSignals(['SIGINT', 'SIGTERM', 'SIGHUP'], (signal) => {
    signals.push(signal);
    for (const listener of listeners) listener();
  });
  const until = async <Value>(work: Promise<Value>, count: number, message: string): Promise<Value> => {
    let listener = () => undefined as void;
    const stopped = new Promise<never>((_, reject) => {
      listener = () => {
        if (signals.length >= count) reject(new CliError(message, EXIT.detached));
      };
    });
    // Left behind after a stop, the work has nobody to hear of its failure.
    work.catch(() => undefined);
    listeners.add(listener);
    listener();
    try {
      return await Promise.race([work, stopped]);
    } finally {
      listeners.delete(listener);
    }
  };
  return {
    get signal() {
      return signals[0];
    },
    unlessStopped: (work) => until(work, 1, 'Stopped; no run was started.'),
    unlessInsisted: (work, hint) => until(work, 2, hint),
    close,
  };
}

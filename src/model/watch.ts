/** Ends a request that is stopped from outside or has gone silent. */
export interface Watch {
  /** For the request. */
  readonly signal: AbortSignal;
  /** Bytes came in. */
  noteBytes(): void;
  /** Something of the answer came in, not only a sign of life. */
  noteProgress(): void;
  /** Why the signal was aborted. */
  stoppedBy(): 'caller' | 'silence' | undefined;
  /** Stops the clocks; call it once the request is over. */
  end(): void;
}

export interface WatchOptions {
  readonly signal: AbortSignal;
  /** Longest time without any byte. */
  readonly idleTimeoutMs: number;
  /** Longest time with nothing but pings. */
  readonly pingsOnlyTimeoutMs: number;
}

export function watchRequest({ signal, idleTimeoutMs, pingsOnlyTimeoutMs }: WatchOptions): Watch {
  const controller = new AbortController();
  let reason: 'caller' | 'silence' | undefined;
  const stop = (why: 'caller' | 'silence') => (): void => {
    reason ??= why;
    controller.abort();
  };
  const onCaller = stop('caller');
  const silence = setTimeout(stop('silence'), idleTimeoutMs);
  const pingsOnly = setTimeout(stop('silence'), pingsOnlyTimeoutMs);
  signal.addEventListener('abort', onCaller, { once: true });
  if (signal.aborted) onCaller();
  return {
    signal: controller.signal,
    noteBytes: () => void silence.refresh(),
    noteProgress: () => void pingsOnly.refresh(),
    stoppedBy: () => reason,
    end() {
      clearTimeout(silence);
      clearTimeout(pingsOnly);
      signal.removeEventListener('abort', onCaller);
    },
  };
}

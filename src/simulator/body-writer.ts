import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Writes a response body until it is done, cut on demand, or the client goes away. */
export interface BodyWriter {
  /** Aborted when the client has gone or the simulator closes. */
  readonly gone: AbortSignal;
  /** False when nothing more can be written. */
  write(text: string): Promise<boolean>;
  /** Waits; false when the client went away meanwhile. */
  wait(ms: number): Promise<boolean>;
  /** Until the client goes away. */
  untilGone(): Promise<void>;
  /** Ends the socket in the middle, after what was written has left. */
  cut(): void;
}

export function createBodyWriter(response: ServerResponse, cutAfterBytes = Infinity): BodyWriter {
  const gone = goneSignal(response);
  let left = cutAfterBytes;
  const cut = (): void => {
    response.socket?.destroy();
  };
  return {
    gone,
    cut,
    async write(text) {
      if (gone.aborted) return false;
      const bytes = Buffer.from(text);
      const part = bytes.subarray(0, left);
      left -= part.length;
      await flush(response, part, gone);
      if (left === 0) cut();
      return left > 0 && !gone.aborted;
    },
    wait: (ms) => waitUnless(gone, ms),
    untilGone: () => (gone.aborted ? Promise.resolve() : new Promise((resolve) => onAbort(gone, resolve))),
  };
}

function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    controller.abort();
  });
  if (response.destroyed) controller.abort();
  return controller.signal;
}

/** Resolves when the bytes have been handed to the system, or the socket has closed before that. */
function flush(response: ServerResponse, bytes: Buffer, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const forget = onAbort(gone, resolve);
    response.write(bytes, () => {
      forget();
      resolve();
    });
  });
}

async function waitUnless(gone: AbortSignal, ms: number): Promise<boolean> {
  if (ms > 0) await sleep(ms, undefined, { signal: gone }).catch(() => undefined);
  return !gone.aborted;
}

function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const once = (): void => {
    listener();
  };
  signal.addEventListener('abort', once, { once: true });
  return () => {
    signal.removeEventListener('abort', once);
  };
}

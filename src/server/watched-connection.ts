import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type ConnectionOptions } from '@temporalio/client';

/** gRPC's own names for what a channel may be in. */
const READY = 2;
const TRANSIENT_FAILURE = 3;

/** gRPC closes a line that nobody used for 30 minutes, and opens it again at need: that would look like a lost one. */
const NEVER_IDLE_MS = 2 ** 31 - 1;

const LOOK_EVERY_MS = 20;

/** A connection that tells when its server cannot be reached any more. */
export class WatchedConnection extends Connection {
  static async open(options: ConnectionOptions): Promise<WatchedConnection> {
    const channelArgs = { ...options.channelArgs, 'grpc.client_idle_timeout_ms': NEVER_IDLE_MS };
    return (await WatchedConnection.connect({ ...options, channelArgs })) as WatchedConnection;
  }

  /**
   * Resolves once the server is gone: nobody answers where it was. A line that a living server closes, as many do every
   * few minutes, is only opened again.
   */
  async whenLost(signal: AbortSignal): Promise<void> {
    await this.#until((state) => state === TRANSIENT_FAILURE, signal);
  }

  /** Resolves once there is a line to the server again. */
  async whenBack(signal: AbortSignal): Promise<void> {
    await this.#until((state) => state === READY, signal);
  }

  // gRPC's own watch misses states that pass between two calls of it, and keeps what it calls for ever.
  async #until(isReached: (state: number) => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !isReached(this.client.getChannel().getConnectivityState(true)))
      await sleep(LOOK_EVERY_MS);
  }
}

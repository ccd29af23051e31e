import { Client, Connection, isGrpcServiceError, type ConnectionOptions } from '@temporalio/client';
import type { TemporalSettings } from '../config.ts';

/** The server cannot be reached; the run, if there is one, goes on as soon as it is back. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable';
}

/** A client and the line it uses. */
export interface TemporalClient {
  readonly client: Client;
  readonly address: string;
  readonly namespace: string;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5000;

/** gRPC's own pauses grow to two minutes, in which a server that is back would still count as away. */
const RECONNECT = { 'grpc.max_reconnect_backoff_ms': 3000 };

/** Connects to the server of the settings; `address` tells where the embedded one is. */
export async function connect(
  settings: TemporalSettings,
  address = settings.address.value,
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<TemporalClient> {
  if (address === undefined)
    throw new ServerUnreachable('The embedded Temporal server is not running: errand up starts it.');
  const namespace = settings.namespace.value;
  const connection = await openConnection(settings, address, timeoutMs);
  return { client: new Client({ connection, namespace }), address, namespace, close: () => connection.close() };
}

/** Whether an error says that nobody answers, as opposed to an answer that says no. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof ServerUnreachable) return true;
  for (let current = error; current instanceof Error; current = current.cause) {
    if (isGrpcServiceError(current) && UNREACHABLE_CODES.has(current.code)) return true;
  }
  return false;
}

// UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED (the line was closed under a call).
const UNREACHABLE_CODES: ReadonlySet<number> = new Set([14, 4, 1]);

async function openConnection(settings: TemporalSettings, address: string, timeoutMs: number): Promise<Connection> {
  // The profile's options are the worker's; the client takes the same names.
  const own = { address, connectTimeout: timeoutMs, channelArgs: RECONNECT };
  const options = { ...settings.connection, ...own } as ConnectionOptions;
  try {
    return await Connection.connect(options);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ServerUnreachable(`The Temporal server at ${address} cannot be reached: ${reason}`, { cause: error });
  }
}

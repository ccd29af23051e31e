import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { ConfigError } from '../config.ts';
import type { Environment } from './worker-environment.ts';

/** What somebody who needs the server asks its supervisor: bring this about, and tell me when it is so. */
export interface EnsureRequest {
  readonly type: 'ensure';
  readonly command: readonly string[];
  readonly buildId: string;
  /** Missing: as many as there are. */
  readonly count?: number;
  /** Missing: the one the workers have. It travels through the socket and is never written down. */
  readonly environment?: Environment;
}

/** The answer, after any number of `log` lines. */
export interface ServerInfo {
  readonly address: string;
  readonly namespace: string;
  /** The Temporal UI; undefined for a server that is not ours. */
  readonly uiUrl?: string;
  readonly embedded: boolean;
  readonly buildId: string;
  readonly logs: string;
  readonly pids: { readonly supervisor: number; readonly temporal?: number; readonly workers: readonly number[] };
}

type Reply =
  | { readonly log: string }
  | { readonly info: ServerInfo }
  | { readonly error: string; readonly isConfig?: boolean }
  | { readonly isStopping: true };

/** Nobody listens at the supervisor's socket (yet, or any more). */
export class SupervisorUnreachable extends Error {}

/** Thrown by a handler whose supervisor is about to end: whoever asked should ask the next one. */
export class SupervisorStopping extends Error {}

export interface AskOptions {
  readonly control: string;
  readonly request: EnsureRequest;
  readonly log: (line: string) => void;
  readonly timeoutMs: number;
}

/** Asks a running supervisor. Rejects with SupervisorUnreachable if it is not there or goes away meanwhile. */
export function askSupervisor({ control, request, log, timeoutMs }: AskOptions): Promise<ServerInfo> {
  return new Promise((resolve, reject) => {
    const socket = connect(control, () => socket.write(`${JSON.stringify(request)}\n`));
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(timeoutMs, () =>
      fail(new Error(`The supervisor did not answer for ${timeoutMs / 1000} s. Run "errand down" and try again.`)),
    );
    socket.on('error', (error) => fail(new SupervisorUnreachable(error.message, { cause: error })));
    socket.on('close', () => fail(new SupervisorUnreachable('the supervisor ended')));
    const lines = createInterface({ input: socket });
    // The socket's errors come here too, and are answered above.
    lines.on('error', fail);
    lines.on('line', (line) => {
      const reply = JSON.parse(line) as Reply;
      if ('log' in reply) return log(reply.log);
      if ('info' in reply) resolve(reply.info);
      else if ('isStopping' in reply) reject(new SupervisorUnreachable('the supervisor is stopping'));
      else reject(reply.isConfig ? new ConfigError(reply.error) : new Error(reply.error));
      socket.end();
    });
  });
}

export type EnsureHandler = (request: EnsureRequest, log: (line: string) => void) => Promise<ServerInfo>;

/** Listens for the home's owner only. One request a connection. */
export async function listenForRequests(control: string, handle: EnsureHandler): Promise<Server> {
  createPrivateFolder(dirname(control));
  rmSync(control, { force: true });
  const server = createServer((socket) => serve(socket, handle));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(control, resolve);
  });
  chmodSync(control, 0o600);
  return server;
}

// In a shared temporary folder the name may have been taken by somebody else: then it is not ours to listen in.
function createPrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(folder);
  if (uid === userInfo().uid && (mode & 0o077) === 0) return;
  throw new Error(
    `${folder} must belong to you and be closed to everybody else (chmod 700): the supervisor listens there.`,
  );
}

function serve(socket: Socket, handle: EnsureHandler): void {
  const say = (reply: Reply) => {
    if (socket.writable) socket.write(`${JSON.stringify(reply)}\n`);
  };
  const lines = createInterface({ input: socket });
  // Who asked may be gone before the answer: there is nobody left to tell. Both emit the socket's errors.
  socket.on('error', () => socket.destroy());
  lines.on('error', () => socket.destroy());
  lines.once('line', (line) => {
    void answer(line, handle, (log) => say({ log }))
      .then(say)
      .finally(() => socket.end());
  });
}

async function answer(line: string, handle: EnsureHandler, log: (line: string) => void): Promise<Reply> {
  try {
    return { info: await handle(JSON.parse(line) as EnsureRequest, log) };
  } catch (error) {
    if (error instanceof SupervisorStopping) return { isStopping: true };
    return { error: error instanceof Error ? error.message : String(error), isConfig: error instanceof ConfigError };
  }
}

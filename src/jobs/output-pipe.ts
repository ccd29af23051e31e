import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';

/** A pipe with a name for a moment; `writer` goes to the child and is closed here as soon as it has it. */
export interface OutputPipe {
  readonly reader: Socket;
  readonly writer: number;
  closeWriter(): void;
}

/**
 * One real pipe for both streams: they stay in order, and `/dev/stdout` can be opened by the command. Node's own
 * stdio pipes are sockets, two of them, on which neither holds.
 */
export function openOutputPipe(path: string): OutputPipe {
  const made = spawnSync('mkfifo', ['-m', '600', path], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });
  if (made.status !== 0) throw new Error(`mkfifo ${path} failed: ${made.error?.message ?? made.stderr}`);
  // The reader first, or opening the other end would wait for one.
  const readerFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  rmSync(path);
  const reader = new Socket({ fd: readerFd, readable: true, writable: false });
  return { reader, writer, closeWriter: () => closeSync(writer) };
}

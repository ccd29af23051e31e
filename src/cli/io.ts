import type { Readable } from 'node:stream';
import type { Environment } from '../config.ts';

export type OutputStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};
export type InputStream = Readable & { readonly isTTY?: boolean; setRawMode?(on: boolean): unknown };

/** Everything a command touches of the process it runs in; tests bring their own. */
export interface CliIo {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Environment;
  readonly cwd: string;
  /** Calls back on each of these signals; answers a function that stops it. */
  onSignals(names: readonly NodeJS.Signals[], listener: (name: NodeJS.Signals) => void): () => void;
}

/** The real process. */
export function processIo(): CliIo {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    onSignals: onProcessSignals,
  };
}

export function printLine(stream: OutputStream, line: string): void {
  stream.write(`${line}\n`);
}

/** A problem, with the program's name before each line of it: several are told at once. */
export function printProblem(stream: OutputStream, message: string): void {
  for (const line of message.split('\n')) printLine(stream, `errand: ${line}`);
}

export function printJson(stream: OutputStream, value: unknown): void {
  stream.write(`${JSON.stringify(value)}\n`);
}

function onProcessSignals(names: readonly NodeJS.Signals[], listener: (name: NodeJS.Signals) => void): () => void {
  for (const name of names) process.on(name, listener);
  return () => {
    for (const name of names) process.off(name, listener);
  };
}

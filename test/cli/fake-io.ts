import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { CliIo } from '../../src/cli/io.ts';
import { main } from '../../src/cli/main.ts';

/** A process of its own for the command line: streams that are kept, signals that are sent by hand. */
export interface TestIo extends CliIo {
  readonly stdin: PassThrough & { isTTY?: boolean; setRawMode(on: boolean): unknown; isRaw?: boolean };
  out(): string;
  err(): string;
  signal(name: NodeJS.Signals): void;
}

export interface TestIoOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly isTty?: boolean;
}

export function createTestIo({ env = {}, cwd = '/', isTty = false }: TestIoOptions = {}): TestIo {
  const [stdout, stderr] = [collect(isTty), collect(isTty)];
  const signals = new EventEmitter();
  const stdin = Object.assign(new PassThrough(), {
    isTTY: isTty,
    setRawMode(on: boolean) {
      Object.assign(stdin, { isRaw: on });
    },
  });
  return {
    stdin,
    stdout: stdout.stream,
    stderr: stderr.stream,
    env,
    cwd,
    out: stdout.text,
    err: stderr.text,
    signal: (name) => signals.emit(name, name),
    onSignals: (names, listener) => {
      for (const name of names) signals.on(name, listener);
      return () => {
        for (const name of names) signals.off(name, listener);
      };
    },
  };
}

/** Runs a command line in this process. */
export async function errand(
  argv: readonly string[],
  options: TestIoOptions,
): Promise<{ code: number; out: string; err: string }> {
  const io = createTestIo(options);
  const code = await main(argv, io);
  return { code, out: io.out(), err: io.err() };
}

function collect(isTty: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY: isTty, columns: 80, rows: 24 });
  const chunks: string[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk.toString('utf8')));
  return { stream, text: () => chunks.join('') };
}

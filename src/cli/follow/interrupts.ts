import type { CliIo } from '../io.ts';

/** How a person's Ctrl-C and other requests to stop are answered while a run is followed. */
export interface InterruptOptions {
  /** Ask at Ctrl-C whether to detach or to cancel; otherwise it detaches. */
  readonly ask: boolean;
  /** Called when the person chose to cancel; following goes on. */
  cancel(): void;
  print(line: string): void;
}

export interface Interrupts {
  /** Resolves when following shall end and the run go on by itself. */
  readonly detached: Promise<NodeJS.Signals>;
  close(): void;
}

const QUESTION =
  'Detach (d: the run goes on) or cancel the run (c)? Any other key: go on watching. Ctrl-C again: detach.';
const CTRL_C = '\u0003';

/** Listens to signals until closed. A second Ctrl-C detaches at once, whatever is going on. */
export function listenForInterrupts(io: CliIo, options: InterruptOptions): Interrupts {
  const detached = withResolver<NodeJS.Signals>();
  let question: Question | undefined;
  let isCancelling = false;
  const answer = (key: string) => {
    question = undefined;
    if (key === CTRL_C || key === 'd') return detached.resolve('SIGINT');
    if (key !== 'c') return;
    isCancelling = true;
    options.print('Cancelling the run and all that belongs to it; Ctrl-C detaches.');
    options.cancel();
  };
  const stop = io.onSignals(['SIGINT', 'SIGTERM', 'SIGHUP'], (signal) => {
    const isFirst = signal === 'SIGINT' && options.ask && question === undefined && !isCancelling;
    if (!isFirst) return detached.resolve(signal);
    options.print(QUESTION);
    question = askForKey(io, answer);
  });
  return {
    detached: detached.promise,
    close: () => {
      stop();
      question?.withdraw();
    },
  };
}

interface Question {
  withdraw(): void;
}

// In raw mode the terminal sends Ctrl-C as a character and no signal.
function askForKey({ stdin }: CliIo, answer: (key: string) => void): Question {
  const withdraw = () => {
    stdin.off('data', onData);
    stdin.setRawMode?.(false);
    stdin.pause();
  };
  const onData = (data: Buffer | string) => {
    withdraw();
    answer(String(data).slice(0, 1).toLowerCase());
  };
  stdin.setRawMode?.(true);
  stdin.on('data', onData);
  stdin.resume();
  return { withdraw };
}

function withResolver<Value>(): { promise: Promise<Value>; resolve(value: Value): void } {
  let settle: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((resolve) => {
    settle = resolve;
  });
  return { promise, resolve: (value) => settle(value) };
}

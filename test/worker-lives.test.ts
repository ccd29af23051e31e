import { describe, expect, it } from 'vitest';
import { liveWithServer } from '../src/worker-lives.ts';

function deferred() {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((onResolve, onReject) => ([resolve, reject] = [onResolve, onReject]));
  return { promise, resolve, reject };
}

/** A worker that ends when the test says so, or when it is shut down with nothing to do. */
class FakeWorker {
  readonly #ended = deferred();
  hasWork = false;
  isShutDown = false;

  run(): Promise<void> {
    return this.#ended.promise;
  }

  shutdown(): void {
    this.isShutDown = true;
    if (!this.hasWork) this.#ended.resolve();
  }

  end(): void {
    this.#ended.resolve();
  }

  fail(error: Error): void {
    this.#ended.reject(error);
  }
}

function start({ failCreations = 0 } = {}) {
  const stop = new AbortController();
  const workers: FakeWorker[] = [];
  const warnings: string[] = [];
  let [lost, back] = [deferred(), deferred()];
  const alive: unknown[] = [];
  const or = (promise: Promise<void>, signal: AbortSignal) =>
    Promise.race([promise, new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))]);
  const over = liveWithServer({
    create: () => {
      if (workers.length > 0 && failCreations-- > 0) return Promise.reject(new Error('not yet'));
      const worker = new FakeWorker();
      workers.push(worker);
      return Promise.resolve(worker);
    },
    server: { whenLost: (signal) => or(lost.promise, signal), whenBack: (signal) => or(back.promise, signal) },
    shutdown: stop.signal,
    onAlive: (worker) => alive.push(worker),
    warn: (line) => warnings.push(line),
  });
  const goAway = () => {
    back = deferred();
    lost.resolve();
  };
  const comeBack = () => {
    lost = deferred();
    back.resolve();
  };
  const tellToEnd = () => {
    stop.abort();
    for (const worker of workers) worker.shutdown();
  };
  return { over, workers, warnings, alive, goAway, comeBack, tellToEnd };
}

const until = (condition: () => boolean) => expect.poll(condition).toBe(true);

describe('liveWithServer', () => {
  it('promise 1: another worker begins with nothing remembered once a lost server is back', async () => {
    const { over, workers, alive, warnings, goAway, comeBack, tellToEnd } = start();
    await until(() => alive.length === 1);
    goAway();
    await until(() => workers[0]?.isShutDown === true);
    expect(workers).toHaveLength(1);
    comeBack();
    await until(() => alive.length === 2);
    expect(warnings).toEqual(['the server is gone; what is remembered of its workflows goes too']);
    tellToEnd();
    await over;
  });

  it('lets the one before end what it is doing, and waits for it at the end', async () => {
    const { over, workers, alive, goAway, comeBack, tellToEnd } = start();
    await until(() => alive.length === 1);
    const [first] = workers;
    if (first) first.hasWork = true;
    goAway();
    comeBack();
    await until(() => alive.length === 2);
    tellToEnd();
    const early = await Promise.race([
      over.then(() => 'over'),
      new Promise((resolve) => setImmediate(resolve, 'not yet')),
    ]);
    expect(early).toBe('not yet');
    first?.end();
    await over;
  });

  it('goes on when the one before cannot end in order', async () => {
    const { over, workers, alive, warnings, goAway, comeBack, tellToEnd } = start();
    await until(() => alive.length === 1);
    const [first] = workers;
    if (first) first.hasWork = true;
    goAway();
    comeBack();
    await until(() => alive.length === 2);
    first?.fail(new Error('no line'));
    await until(() => warnings.includes('the worker from before the server was lost ended badly: no line'));
    tellToEnd();
    await over;
  });

  it('tries again while the server is back but cannot be worked for yet', async () => {
    const { over, alive, warnings, goAway, comeBack, tellToEnd } = start({ failCreations: 2 });
    await until(() => alive.length === 1);
    goAway();
    comeBack();
    await until(() => alive.length === 2);
    expect(warnings.filter((line) => line === 'cannot work yet: not yet')).toHaveLength(2);
    tellToEnd();
    await over;
  });

  it('ends when it is told to, also while the server is away', async () => {
    const { over, workers, alive, goAway, tellToEnd } = start();
    await until(() => alive.length === 1);
    goAway();
    await until(() => workers[0]?.isShutDown === true);
    tellToEnd();
    await over;
    expect(workers).toHaveLength(1);
  });

  it('ends when it is told to while a worker is being made', async () => {
    const stop = new AbortController();
    const worker = new FakeWorker();
    const never = () => new Promise<void>(() => undefined);
    await liveWithServer({
      create: () => {
        stop.abort();
        return Promise.resolve(worker);
      },
      server: { whenLost: never, whenBack: never },
      shutdown: stop.signal,
      onAlive: () => undefined,
      warn: () => undefined,
    });
    expect(worker.isShutDown).toBe(true);
  });

  it('ends with a worker that ends by itself, and fails with one that fails', async () => {
    const ended = start();
    await until(() => ended.alive.length === 1);
    ended.workers[0]?.end();
    await ended.over;
    expect(ended.workers).toHaveLength(1);
    const failed = start();
    await until(() => failed.alive.length === 1);
    failed.workers[0]?.fail(new Error('broken'));
    await expect(failed.over).rejects.toThrow('broken');
  });
});

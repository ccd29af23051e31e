import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../config.ts';
import { identifyProcess, type ProcessIdentity } from '../process-identity.ts';
import type { ProcessPhase, ProcessRecord } from './instance-state.ts';
import { waitUntil } from './wait.ts';

/** A life at least this long wipes out what the ones before it suggested. */
const STEADY_MS = 30_000;
const LONGEST_PAUSE_MS = 5_000;
/** So many deaths before it was ready, while somebody waits for it, are reported instead of waited out. */
const PATIENCE_DEATHS = 2;

/** The one end that leaves nothing behind, for a process that was told to end. */
const CLEAN_END = 'ended with code 0';

export interface KeptProcessOptions {
  readonly name: string;
  /** Starts the process once. May take its time, but must not wait between spawning and returning. */
  readonly start: () => Promise<ChildProcess>;
  /** Called at every change of `record`. */
  readonly onChange: () => void;
  /** Called once it is gone, when it died without having been told to, or did not end in good order. */
  readonly onDeath: (cause: string) => void;
}

/** A process that is started again whenever it dies: at once the first time, later after up to five seconds. */
export class KeptProcess {
  readonly #options: KeptProcessOptions;
  #phase: ProcessPhase = 'starting';
  #child: ChildProcess | undefined;
  #process: ProcessIdentity | undefined;
  #startedAt: string | undefined;
  #deaths = 0;
  #quickDeaths = 0;
  #isStopping = false;
  /** Why it must not be started, if that was the last answer: tried again, but nobody has to wait for it. */
  #refusal: ConfigError | undefined;
  #pause = new AbortController();
  #life: Promise<void> = Promise.resolve();

  constructor(options: KeptProcessOptions) {
    this.#options = options;
  }

  get record(): ProcessRecord {
    return {
      name: this.#options.name,
      process: this.#process,
      phase: this.#phase,
      startedAt: this.#startedAt,
      restarts: this.#deaths,
    };
  }

  begin(): void {
    this.#life = this.#run();
  }

  markReady(child: ChildProcess): void {
    if (child === this.#child && !this.#isStopping) this.#enter('ready');
  }

  /** Resolves once it is ready; rejects if it keeps dying before that, or the time is over. */
  async whenReady({ timeoutMs, hint }: { timeoutMs: number; hint: () => string }): Promise<void> {
    const deathsBefore = this.#deaths;
    this.#forgetRefusal();
    this.#pause.abort();
    const isHopeless = () =>
      this.#isStopping || this.#refusal !== undefined || this.#deaths - deathsBefore >= PATIENCE_DEATHS;
    const isSettled = await waitUntil(() => this.#phase === 'ready' || isHopeless(), { timeoutMs });
    if (this.#phase === 'ready') return;
    const { name } = this.#options;
    if (this.#isStopping) throw new Error(`${name} is being stopped`);
    if (this.#refusal) throw this.#refusal;
    if (!isSettled) throw new Error(`${name} was not ready within ${timeoutMs / 1000} s. ${hint()}`);
    throw new Error(`${name} ended before it was ready, ${PATIENCE_DEATHS} times in a row. ${hint()}`);
  }

  /** SIGTERM, then SIGKILL after the grace time. Resolves when the process is gone. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.#pause.abort();
    this.#enter('draining');
    this.#child?.kill('SIGTERM');
    const killer = setTimeout(() => this.#child?.kill('SIGKILL'), graceMs);
    await this.#life;
    clearTimeout(killer);
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const startedMs = performance.now();
      const cause = await this.#live();
      if (this.#isStopping) {
        if (cause !== CLEAN_END) this.#options.onDeath(`${cause} while it was being stopped`);
        break;
      }
      this.#deaths += 1;
      this.#quickDeaths = performance.now() - startedMs >= STEADY_MS ? 0 : this.#quickDeaths + 1;
      this.#enter('starting');
      this.#options.onDeath(cause);
      await this.#rest();
    }
    this.#enter('stopped');
  }

  /** One life, from start to end; tells how it ended. */
  async #live(): Promise<string> {
    try {
      const child = await this.#options.start();
      const ended = whenEnded(child);
      this.#child = child;
      this.#process = child.pid === undefined ? undefined : identifyProcess(child.pid);
      this.#startedAt = new Date().toISOString();
      if (this.#isStopping) child.kill('SIGTERM');
      this.#options.onChange();
      return await ended;
    } catch (error) {
      if (error instanceof ConfigError) this.#refusal = error;
      return `could not be started: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      this.#child = undefined;
      this.#process = undefined;
    }
  }

  #forgetRefusal(): void {
    this.#refusal = undefined;
  }

  async #rest(): Promise<void> {
    this.#pause = new AbortController();
    const pauseMs = this.#quickDeaths <= 1 ? 0 : Math.min(LONGEST_PAUSE_MS, 250 * 2 ** (this.#quickDeaths - 2));
    await sleep(pauseMs, undefined, { signal: this.#pause.signal }).catch((error: Error) => {
      if (error.name !== 'AbortError') throw error;
    });
  }

  #enter(phase: ProcessPhase): void {
    this.#phase = phase;
    this.#options.onChange();
  }
}

function whenEnded(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(`could not be started: ${error.message}`);
    });
    child.once('exit', (code, signal) =>
      resolve(signal ? `ended by ${signal}` : code === 0 ? CLEAN_END : `ended with code ${code}`),
    );
  });
}

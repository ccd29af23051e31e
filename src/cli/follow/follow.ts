import { setTimeout as delay } from 'node:timers/promises';
import type { RunEnding } from '../../client.ts';
import { isProgress } from '../live-meta.ts';
import { EventReader, type AgentEvent } from './events.ts';
import { TranscriptTail } from './tail.ts';
import type { FollowView } from './view.ts';

/** What following asks of the server; both throw `ServerUnreachable`-like errors while nobody answers. */
export interface RunWatch {
  /** Resolves when the run has ended. */
  ending(): Promise<RunEnding>;
  /** Why the agents do not move; empty when they do. */
  waiting(agents: readonly string[], since: Date): Promise<readonly string[]>;
  isUnreachable(error: unknown): boolean;
  /** Called before asking again after an unreachable server. */
  reconnect(): Promise<void>;
}

export interface FollowOptions {
  readonly home: string;
  readonly stem: string;
  readonly watch: RunWatch;
  readonly view: FollowView;
  /** Resolves when the person wants to leave. */
  readonly detached: Promise<unknown>;
}

/** What was seen of the run; `ending` is missing when the person left before. */
export interface Followed {
  readonly ending?: RunEnding;
  readonly seen: SeenRun;
}

const POLL_MS = 150;
const QUIET_MS = 3000;
const RETRY_MS = 1000;

/** Shows a run until it ends or the person leaves. The end is what the server says; then the files are read to theirs. */
export async function followRun({ home, stem, watch, view, detached }: FollowOptions): Promise<Followed> {
  const seen = new SeenRun(home, stem, view);
  const quiet = new QuietWatch(watch, view, seen);
  const stop = new AbortController();
  const ending = endingOf(watch, view, stop.signal);
  let isOver = false;
  let isDetached = false;
  const over = ending.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  const left = detached.then(() => (isDetached = true));
  while (!isOver && !isDetached) {
    await seen.drain();
    quiet.look();
    view.tick();
    await Promise.race([over, left, delay(POLL_MS)]);
  }
  const hasEnded = isOver;
  // Only a wait for a server that is away hears it; nobody is left to mind that it fails.
  stop.abort();
  await seen.drain();
  return hasEnded ? { ending: await ending, seen } : { seen };
}

/** What the transcripts have shown so far. */
export class SeenRun {
  readonly #tail: TranscriptTail;
  readonly #reader = new EventReader();
  readonly #view: FollowView;
  readonly #open = new Set<string>();
  /** Last text of each agent. */
  readonly #texts = new Map<string, string>();
  readonly #ends = new Map<string, Extract<AgentEvent, { type: 'ended' }>>();
  lastMove = new Date();

  constructor(home: string, stem: string, view: FollowView) {
    this.#tail = new TranscriptTail(home, stem);
    this.#view = view;
  }

  get openAgents(): readonly string[] {
    return [...this.#open];
  }

  get skippedLines(): number {
    return this.#tail.skippedLines;
  }

  textOf(agentId: string): string {
    return this.#texts.get(agentId) ?? '';
  }

  endOf(agentId: string): Extract<AgentEvent, { type: 'ended' }> | undefined {
    return this.#ends.get(agentId);
  }

  /** Reads and shows what is new. */
  async drain(): Promise<void> {
    for (const record of await this.#tail.poll()) {
      if (isProgress(record.record)) this.lastMove = new Date();
      for (const event of this.#reader.read(record)) this.#take(event);
    }
  }

  #take(event: AgentEvent): void {
    if (event.type === 'started') this.#open.add(event.agentId);
    if (event.type === 'turn' && event.text !== '') this.#texts.set(event.agentId, event.text);
    if (event.type === 'ended') {
      this.#open.delete(event.agentId);
      this.#ends.set(event.agentId, event);
    }
    this.#view.show(event);
  }
}

/** Asks the server why, once nothing has moved for a while. */
class QuietWatch {
  readonly #watch: RunWatch;
  readonly #view: FollowView;
  readonly #seen: SeenRun;
  #isAsking = false;
  #isWaiting = false;
  #nextMs = 0;

  constructor(watch: RunWatch, view: FollowView, seen: SeenRun) {
    this.#watch = watch;
    this.#view = view;
    this.#seen = seen;
  }

  look(): void {
    const nowMs = Date.now();
    const isQuiet = nowMs - this.#seen.lastMove.getTime() >= QUIET_MS;
    if (!isQuiet) this.#say([]);
    if (!isQuiet || this.#isAsking || nowMs < this.#nextMs) return;
    this.#isAsking = true;
    this.#nextMs = nowMs + QUIET_MS;
    void this.#ask().finally(() => (this.#isAsking = false));
  }

  async #ask(): Promise<void> {
    const { openAgents, lastMove } = this.#seen;
    try {
      this.#say(await this.#watch.waiting(openAgents, lastMove));
    } catch {
      // Whatever kept the server from answering, the ending's own loop says it: this line is only a comfort.
    }
  }

  #say(reasons: readonly string[]): void {
    if (reasons.length === 0 && !this.#isWaiting) return;
    this.#isWaiting = reasons.length > 0;
    this.#view.show({ type: 'waiting', text: this.#isWaiting ? `waiting: ${reasons.join('; ')}` : '' });
  }
}

// An unreachable server is waited for: the run goes on once it is back, and so does this view.
async function endingOf(watch: RunWatch, view: FollowView, signal: AbortSignal): Promise<RunEnding> {
  for (;;) {
    try {
      return await watch.ending();
    } catch (error) {
      if (!watch.isUnreachable(error)) throw error;
      if (!signal.aborted) view.show({ type: 'waiting', text: 'server not reachable, waiting' });
    }
    await delay(RETRY_MS, undefined, { signal, ref: false });
    await watch.reconnect().catch((error: unknown) => {
      if (!watch.isUnreachable(error)) throw error;
    });
  }
}

import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobUsage } from './job-usage.ts';

/** What all processes of one command may take together. */
export interface JobCeilings {
  readonly memoryBytes: number;
  readonly processes: number;
}

/** The ceiling a job went over. */
export interface OverCeiling {
  readonly of: 'memory' | 'processes';
  readonly limit: number;
  /** What it was seen to have. */
  readonly used: number;
}

export interface CeilingWatch {
  readonly ceilings: JobCeilings;
  /** Undefined: there is nothing to be seen. */
  measure(): JobUsage | undefined;
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

/**
 * Looks at a job until it goes over a ceiling. The kernel's own limits are no help here: those of a process can be
 * multiplied by forking and break programs that reserve address space (AddressSanitizer), those of a user do not hold for
 * root, and control groups are not there for everybody.
 */
export async function watchCeilings({ ceilings, measure, signal }: CeilingWatch): Promise<OverCeiling | undefined> {
  let pauseMs = SHORTEST_PAUSE_MS;
  while (await pause(pauseMs, signal)) {
    const startMs = performance.now();
    const usage = measure();
    const over = usage && overCeiling(usage, ceilings);
    if (over) return over;
    pauseMs = nextPauseMs({ usage, ceilings, costMs: performance.now() - startMs });
  }
  return undefined;
}

export function overCeiling({ memoryBytes, processes }: JobUsage, ceilings: JobCeilings): OverCeiling | undefined {
  if (memoryBytes > ceilings.memoryBytes) return { of: 'memory', limit: ceilings.memoryBytes, used: memoryBytes };
  if (processes > ceilings.processes) return { of: 'processes', limit: ceilings.processes, used: processes };
  return undefined;
}

/** What a program can take at most in a millisecond: measured 1 GiB/s a core, and 2 forks/ms from a shell. */
const BYTES_PER_CORE_MS = (2 * 1024 ** 3) / 1000;
const FORKS_PER_MS = 5;
const SHORTEST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
/** Looks take at most this part of a core's time, as long as that does not make the pauses this much longer. */
const COST_SHARE = 1 / 50;
const MOST_STRETCH = 4;

interface Look {
  readonly usage: JobUsage | undefined;
  readonly ceilings: JobCeilings;
  readonly costMs: number;
}

/** No longer than the job needs to reach a ceiling from where it is, no shorter than a look is worth. */
export function nextPauseMs({ usage, ceilings, costMs }: Look, cores = availableParallelism()): number {
  const { memoryBytes, processes } = usage ?? { memoryBytes: 0, processes: 0 };
  const reachMs = Math.min(
    (ceilings.memoryBytes - memoryBytes) / (BYTES_PER_CORE_MS * cores),
    (ceilings.processes - processes) / FORKS_PER_MS,
  );
  const wantedMs = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, reachMs));
  return Math.max(wantedMs, Math.min(wantedMs * MOST_STRETCH, costMs / COST_SHARE));
}

async function pause(pauseMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(pauseMs, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

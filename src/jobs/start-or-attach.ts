import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { crashEnvironment, crashPoint } from '../crash-points.ts';
import { moveAside } from '../sandbox/guard.ts';
import type { SandboxPlan } from '../sandbox/plan.ts';
import type { JobCeilings } from './ceilings.ts';
import {
  claimJob,
  claimSupervision,
  hasJob,
  jobFiles,
  readExit,
  readSpec,
  readSupervisor,
  recordExit,
  type JobExit,
  type JobFiles,
  type JobSpec,
  type OutputCaps,
} from './job-folder.ts';
import { isAlive } from '../process-identity.ts';
import { readOutput, readOutputEnd } from './job-output.ts';
import { lastLine } from './output-text.ts';
import { findMarked, killUntilGone, signalAll } from './process-tree.ts';

/** A command of a call, to be run at most once. */
export interface Job {
  /** The call's folder in the effect journal. */
  readonly folder: string;
  readonly command: string;
  readonly cwd: string;
  /** Counted from the start of the command, over all attempts. */
  readonly timeoutMs: number;
  readonly sandbox: SandboxPlan;
  /** Default: 4 MiB of each end kept, killed past 256 MiB. */
  readonly caps?: OutputCaps;
  /** What its processes may take together. Default: whatever the machine gives. */
  readonly ceilings?: JobCeilings;
}

export interface AttachOptions {
  /** Ends the waiting, never the job. */
  readonly signal?: AbortSignal;
  /** Last line of output, at most once a second. */
  readonly onProgress?: (line: string) => void;
  /** Asked every two seconds; what it throws ends the waiting, never the job. */
  readonly check?: () => Promise<void>;
  /** Longest time between two looks at the job folder. Default 250. */
  readonly pollMs?: number;
  /** The supervisor program. Default: the one built beside this file. */
  readonly supervisorPath?: string;
}

/** How a job ended and where its output is. */
export interface JobOutcome {
  /** The job's own folder; undefined when none was made. */
  readonly folder?: string;
  readonly exit: JobExit;
  readonly timeoutMs: number;
  readonly caps: OutputCaps;
}

export const DEFAULT_CAPS: OutputCaps = {
  headBytes: 4 * 1024 * 1024,
  tailBytes: 4 * 1024 * 1024,
  flowBytes: 256 * 1024 * 1024,
};

/**
 * Starts the job of a call, or waits for the one that was started before; answers the same outcome to every attempt.
 * An aborted signal rejects with its reason and leaves the job running.
 */
export async function startOrAttach(job: Job, options: AttachOptions = {}): Promise<JobOutcome> {
  const { sandbox, folder, command, cwd, timeoutMs, caps = DEFAULT_CAPS, ceilings } = job;
  const files = jobFiles(folder);
  options.signal?.throwIfAborted();
  if (!hasJob(folder)) {
    if (sandbox.kind === 'refused') return notStarted(job, `${sandbox.reason}. ${sandbox.fix}`);
    if (command.includes('\0')) return notStarted(job, 'the command holds a NUL character');
    crashPoint('claim.before');
    await claimJob(folder, { command, cwd, timeoutMs, sandbox, caps, ceilings });
    crashPoint('claim.after');
  }
  const spec = await readSpec(files);
  const exit = await waitForExit(files, spec, options);
  return { folder: files.folder, exit, timeoutMs: spec.timeoutMs, caps: spec.caps };
}

/** The ending of a job whose supervisor is gone without one; ends what is left of it. */
export async function recordInterruption(files: JobFiles, spec: JobSpec): Promise<JobExit> {
  // Between the last look and now the supervisor may have come to its end after all.
  const known = await readExit(files);
  if (known) return known;
  await killUntilGone(() => findMarked(spec.jobId));
  const { totalBytes } = readOutput(files.folder, spec.caps);
  const startedAt = (await readSupervisor(files))?.startedAt;
  const guarded = spec.sandbox.kind === 'bwrap' ? spec.sandbox.guarded : [];
  return recordExit(files, {
    interrupted: true,
    cancelled: existsSync(files.cancel),
    totalBytes,
    movedAside: await moveAside(guarded, files.aside),
    ...(startedAt ? { startedAt } : {}),
  });
}

/** A supervisor that has not shown itself after this time is started once more; only one can win the job. */
const START_WAIT_MS = 3_000;
const MAX_STARTS = 3;
/** How long a job may be seen past its deadline before its supervisor counts as stuck. */
const OVERDUE_MS = 15_000;

async function waitForExit(files: JobFiles, spec: JobSpec, options: AttachOptions): Promise<JobExit> {
  const { signal, pollMs = 250 } = options;
  const starter = createStarter(files, spec, options);
  const isStuck = createStuckWatch();
  const report = createReporter(files, options);
  const check = createCheck(options);
  for (let pauseMs = 10; ; pauseMs = Math.min(pollMs, pauseMs * 2)) {
    const exit = (await readExit(files)) ?? (await lookAtSupervisor(files, spec, { starter, isStuck }));
    if (exit) return exit;
    report();
    await check();
    await pause(pauseMs, signal);
  }
}

async function lookAtSupervisor(
  files: JobFiles,
  spec: JobSpec,
  { starter, isStuck }: { starter: Starter; isStuck(deadlineMs: number): boolean },
): Promise<JobExit | undefined> {
  const supervisor = await readSupervisor(files);
  if (!supervisor) return starter();
  if (supervisor.process === null) return recordExit(files, { cancelled: true, notStarted: 'it was called off' });
  if (isAlive(supervisor.process)) {
    if (isStuck(supervisor.deadlineMs)) signalAll([supervisor.process.pid], 'SIGKILL');
    return undefined;
  }
  return recordInterruption(files, spec);
}

// Not by how far the deadline has passed: a machine that slept wakes up hours behind it, and the supervisor, which has
// slept too, needs a moment to end the command in good order.
function createStuckWatch(): (deadlineMs: number) => boolean {
  let overdueSince: number | undefined;
  return (deadlineMs) => {
    if (Date.now() <= deadlineMs) return false;
    overdueSince ??= performance.now();
    return performance.now() - overdueSince > OVERDUE_MS;
  };
}

type Starter = () => Promise<JobExit | undefined>;

// Whoever finds a claimed job without a supervisor starts one, the claimant as well as an attempt after its death: the
// supervisor's own claim decides which one runs the command.
function createStarter(files: JobFiles, spec: JobSpec, { supervisorPath = BUILT_SUPERVISOR }: AttachOptions): Starter {
  let starts = 0;
  let nextStart = 0; // On the clock that nobody sets.
  return async () => {
    if (performance.now() < nextStart) return undefined;
    if (starts === MAX_STARTS) {
      await claimSupervision(files, { process: null, timeoutMs: spec.timeoutMs });
      return recordExit(files, { notStarted: `its supervisor does not start; see ${files.log}` });
    }
    starts += 1;
    nextStart = performance.now() + START_WAIT_MS * starts;
    await spawnSupervisor(files, supervisorPath);
    return undefined;
  };
}

const BUILT_SUPERVISOR = fileURLToPath(new URL('./supervisor.js', import.meta.url));

async function spawnSupervisor(files: JobFiles, supervisorPath: string): Promise<void> {
  const log = openSync(files.log, 'a', 0o600);
  try {
    const child = spawn(process.execPath, ['--max-old-space-size=128', supervisorPath, files.folder], {
      cwd: '/',
      detached: true,
      stdio: ['ignore', log, log],
      // Nothing of the worker's: the command's parent can be looked at where there is no sandbox.
      env: crashEnvironment(),
    });
    await once(child, 'spawn');
    child.unref();
  } finally {
    closeSync(log);
  }
}

function createReporter(files: JobFiles, { onProgress }: AttachOptions): () => void {
  let next = performance.now() + 1_000;
  return () => {
    if (!onProgress || performance.now() < next) return;
    next = performance.now() + 1_000;
    const line = lastLine(readOutputEnd(files.folder));
    if (line !== '') onProgress(line);
  };
}

function createCheck({ check }: AttachOptions): () => Promise<void> {
  let next = performance.now() + 2_000;
  return async () => {
    if (!check || performance.now() < next) return;
    next = performance.now() + 2_000;
    await check();
  };
}

async function pause(pauseMs: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(pauseMs, undefined, { signal });
  } catch (error) {
    // Node hides the abort's reason behind an error of its own.
    signal?.throwIfAborted();
    throw error;
  }
}

function notStarted({ timeoutMs, caps = DEFAULT_CAPS }: Job, reason: string): JobOutcome {
  const now = new Date().toISOString();
  const ending = { exitCode: null, signal: null, timedOut: false, outputCapped: false, cancelled: false };
  const times = { startedAt: now, endedAt: now, totalBytes: 0, movedAside: [] };
  return { exit: { v: 1, ...ending, ...times, interrupted: false, notStarted: reason }, timeoutMs, caps };
}

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { moveAside } from '../sandbox/guard.ts';
import type { JobExit, JobFiles, JobSpec } from './job-folder.ts';
import { OutputWriter } from './job-output.ts';
import { readOomKills } from './job-usage.ts';
import { watchJob } from './job-watch.ts';
import { launch, type Launched } from './launch.ts';
import { openOutputPipe } from './output-pipe.ts';
import { createJobFinder, killUntilGone, signalAll } from './process-tree.ts';

/** Why a job ends; `exited` is its own doing. */
export type StopCause = 'exited' | 'deadline' | 'flow' | 'ceiling' | 'cancelled' | 'interrupted';

export interface RunOptions {
  readonly files: JobFiles;
  readonly spec: JobSpec;
  /** Asked four times a second: must the job end now? */
  stopCause(): StopCause | undefined;
}

/** Runs the command to its end, whatever ends it; when this returns no process of it is left. */
export async function runCommand({ files, spec, stopCause }: RunOptions): Promise<Partial<JobExit>> {
  const output = new OutputWriter(files.folder, spec.caps);
  const pipe = openOutputPipe(files.pipe);
  const sink = collect(pipe.reader, output, spec);
  const oomKills = readOomKills();
  const job = await launchOrExplain(spec, pipe.writer);
  pipe.closeWriter();
  if (typeof job === 'string') return { notStarted: job };

  const find = createJobFinder(job.pid, spec.jobId);
  const watch = watchJob(job, spec, find);
  const cause = await firstCause([job.exited.then(() => 'exited' as const), sink.overflow, watch.over], stopCause);
  watch.stop();
  if (cause !== 'exited') {
    const graceMs = cause === 'flow' || cause === 'ceiling' ? 0 : GRACE_MS;
    await stopTree({ job, spec, find, graceMs });
  }
  const { code, signal } = await job.exited;
  await drain(pipe.reader, spec.sandbox.kind === 'none' ? DRAIN_MS : GRACE_MS);
  const survivors = await killUntilGone(find);
  pipe.reader.destroy();
  output.close();
  const aside = await clearAway(files, spec);
  const lasting = survivors.length > 0 ? `processes ${survivors.join(', ')} do not end` : undefined;
  const ended =
    spec.sandbox.kind === 'bwrap' ? sandboxEnding(job, { code, signal, cause }) : { exitCode: code, signal };
  const isOutOfMemory = cause === 'exited' && ended.exitCode !== 0 && readOomKills() > oomKills;
  return {
    ...ended,
    timedOut: cause === 'deadline',
    outputCapped: cause === 'flow',
    ...(cause === 'ceiling' ? { overCeiling: watch.found() } : {}),
    ...(isOutOfMemory ? { outOfMemory: true } : {}),
    cancelled: cause === 'cancelled',
    ...(cause === 'interrupted' ? { interrupted: true } : {}),
    totalBytes: output.totalBytes,
    problem: sink.problem() ?? lasting ?? aside.problem ?? watch.problem(),
    movedAside: aside.moved,
  };
}

/** Time between TERM and KILL. */
const GRACE_MS = 2_000;
/** How long output of a background process is waited for after the shell has ended. */
const DRAIN_MS = 200;
const TICK_MS = 250;

function collect(reader: Socket, output: OutputWriter, spec: JobSpec) {
  let problem: string | undefined;
  let tellOverflow: (cause: 'flow') => void = () => {};
  const overflow = new Promise<'flow'>((resolve) => (tellOverflow = resolve));
  reader.on('data', (chunk: Buffer) => {
    if (output.totalBytes > spec.caps.flowBytes) return;
    try {
      output.write(chunk);
    } catch (error) {
      // The command goes on: a full disk must not decide over its effects. The loss is told with the result.
      problem ??= String(error);
    }
    if (output.totalBytes > spec.caps.flowBytes) tellOverflow('flow');
  });
  reader.on('error', (error) => (problem ??= String(error)));
  return { overflow, problem: () => problem };
}

async function launchOrExplain(spec: JobSpec, writer: number): Promise<Launched | string> {
  try {
    return await launch(spec, writer);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'E2BIG') return 'the command is too long for the system; write it to a file and run that';
    return `the shell could not be started in ${spec.cwd}: ${message}`;
  }
}

// Not a race in a loop: over hours each round would leave something behind with those that have not come yet.
function firstCause(causes: readonly Promise<StopCause>[], stopCause: () => StopCause | undefined): Promise<StopCause> {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const cause = stopCause();
      if (cause === undefined) return;
      clearInterval(timer);
      resolve(cause);
    }, TICK_MS);
    void Promise.race(causes)
      .then(resolve, reject)
      .finally(() => clearInterval(timer));
  });
}

interface Stop {
  readonly job: Launched;
  readonly spec: JobSpec;
  readonly graceMs: number;
  find(): readonly number[];
}

async function stopTree({ job, spec, graceMs, find }: Stop): Promise<void> {
  if (graceMs > 0) {
    // Not bubblewrap itself: everything inside would die with it at once.
    const isInside = (pid: number) => spec.sandbox.kind === 'none' || (pid !== job.pid && pid !== job.status.initPid);
    signalAll(find().filter(isInside), 'SIGTERM');
    await Promise.race([job.exited, sleep(graceMs)]);
  }
  await killUntilGone(find);
}

async function drain(reader: Socket, limitMs: number): Promise<void> {
  if (reader.readableEnded || reader.closed) return;
  await Promise.race([once(reader, 'close'), sleep(limitMs)]);
}

// What cannot be moved is reported; the command's own ending must not be lost over it.
async function clearAway(
  files: JobFiles,
  { sandbox }: JobSpec,
): Promise<{ moved: readonly string[]; problem?: string }> {
  const guarded = sandbox.kind === 'bwrap' ? sandbox.guarded : [];
  try {
    return { moved: await moveAside(guarded, files.aside) };
  } catch (error) {
    return { moved: [], problem: `files that commands may not create could not be removed: ${String(error)}` };
  }
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly cause: StopCause;
}

function sandboxEnding({ status }: Launched, { code, signal, cause }: Ended): Partial<JobExit> {
  if (status.exitCode !== undefined) return { exitCode: status.exitCode, signal: fatalSignal(status.exitCode) };
  if (cause !== 'exited') return { signal: 'SIGKILL' };
  // Without a report the command never began, unless bubblewrap was killed over it.
  return signal === null ? { notStarted: `bubblewrap failed with exit code ${code}` } : { interrupted: true, signal };
}

// Through bubblewrap a signal arrives as 128 + its number. Only those no program uses as a code of its own (git exits
// with 128 and 129).
const FATAL: readonly NodeJS.Signals[] = ['SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGTERM'];

function fatalSignal(exitCode: number): NodeJS.Signals | null {
  return FATAL.find((name) => constants.signals[name] === exitCode - 128) ?? null;
}

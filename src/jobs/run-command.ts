import { once } from 'node:events';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { moveAside } from '../sandbox/guard.ts';
import type { JobExit, JobFiles, JobSpec } from './job-folder.ts';
import { OutputWriter } from './job-output.ts';
import { launch, type Launched } from './launch.ts';
import { openOutputPipe } from './output-pipe.ts';
import { findMarked, findTree, killUntilGone, signalAll } from './process-tree.ts';

/** Why a job ends; `exited` is its own doing. */
export type StopCause = 'exited' | 'deadline' | 'flow' | 'cancelled' | 'interrupted';

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
  const job = await launchOrExplain(spec, pipe.writer);
  pipe.closeWriter();
  if (typeof job === 'string') return { notStarted: job };

  const cause = await waitForEnd(job, sink.overflow, stopCause);
  if (cause !== 'exited') await stopTree(job, spec, cause === 'flow' ? 0 : GRACE_MS);
  const { code, signal } = await job.exited;
  await drain(pipe.reader, spec.sandbox.kind === 'none' ? DRAIN_MS : GRACE_MS);
  const survivors = await killUntilGone(() => findJob(job, spec));
  pipe.reader.destroy();
  output.close();
  const aside = await clearAway(files, spec);
  const lasting = survivors.length > 0 ? `processes ${survivors.join(', ')} do not end` : undefined;
  return {
    ...(spec.sandbox.kind === 'bwrap' ? sandboxEnding(job, { code, signal, cause }) : { exitCode: code, signal }),
    timedOut: cause === 'deadline',
    outputCapped: cause === 'flow',
    cancelled: cause === 'cancelled',
    ...(cause === 'interrupted' ? { interrupted: true } : {}),
    totalBytes: output.totalBytes,
    problem: sink.problem() ?? lasting ?? aside.problem,
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

async function waitForEnd(
  job: Launched,
  overflow: Promise<'flow'>,
  stopCause: () => StopCause | undefined,
): Promise<StopCause> {
  const exited = job.exited.then(() => 'exited' as const);
  for (;;) {
    const cause = await Promise.race([exited, overflow, sleep(TICK_MS).then(stopCause)]);
    if (cause !== undefined) return cause;
  }
}

async function stopTree(job: Launched, spec: JobSpec, graceMs: number): Promise<void> {
  if (graceMs > 0) {
    // Not bubblewrap itself: everything inside would die with it at once.
    const isInside = (pid: number) => spec.sandbox.kind === 'none' || (pid !== job.pid && pid !== job.status.initPid);
    signalAll(findJob(job, spec).filter(isInside), 'SIGTERM');
    await Promise.race([job.exited, sleep(graceMs)]);
  }
  await killUntilGone(() => findJob(job, spec));
}

function findJob(job: Launched, spec: JobSpec): readonly number[] {
  return [...new Set([...findTree(job.pid), ...findMarked(spec.jobId)])];
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

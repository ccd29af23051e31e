import { existsSync, statSync } from 'node:fs';
import { argv } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { crashPoint } from '../crash-points.ts';
import { ownIdentity } from '../process-identity.ts';
import { claimSupervision, filesIn, readSpec, readSupervisor, recordExit, type JobExit } from './job-folder.ts';
import { runCommand, type StopCause } from './run-command.ts';

// Program of its own: `node supervisor.js <job folder>`. It outlives the worker that started it and runs one command.

await superviseJob(argv[2]);
// Timers that lost their race would keep it for seconds, and whoever cancels a job waits until it is gone.
process.exit(0);

async function superviseJob(folder: string | undefined): Promise<void> {
  if (folder === undefined) throw new Error('The supervisor needs the job folder as its argument.');
  const files = filesIn(folder);
  const spec = await readSpec(files);
  const isMine = await claimSupervision(files, { process: ownIdentity(), timeoutMs: spec.timeoutMs });
  // Another supervisor of the same job was first, or the job was called off.
  if (!isMine) return;
  const record = await readSupervisor(files);
  const deadlineMs = record?.deadlineMs ?? Date.now() + spec.timeoutMs;
  // Both clocks: one may be set back, the other stands still while the machine sleeps.
  const steadyDeadlineMs = performance.now() + spec.timeoutMs;
  const isOver = () => Date.now() >= deadlineMs || performance.now() >= steadyDeadlineMs;
  const told = listenForStop();
  const stopCause = (): StopCause | undefined => {
    if (existsSync(files.cancel)) return 'cancelled';
    // The journal was taken away: nobody can end this job any more, or learn how it ended.
    if (isGone(files.folder)) return 'interrupted';
    return told() ? 'interrupted' : isOver() ? 'deadline' : undefined;
  };
  const startedAt = new Date().toISOString();
  crashPoint('command.before');
  const ending: Partial<JobExit> = await runCommand({ files, spec, stopCause });
  crashPoint('command.after');
  await recordInTheEnd(() => recordExit(files, { ...ending, startedAt, endedAt: new Date().toISOString() }));
}

/** Not where it only cannot be looked at: trouble with the disk ends no command. */
function isGone(folder: string): boolean {
  try {
    statSync(folder);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

// A signal without a cancel file comes from outside, a shutdown for instance.
function listenForStop(): () => boolean {
  let isTold = false;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => (isTold = true));
  return () => isTold;
}

// The ending is known only here. A full disk is waited out; meanwhile the attempts see a living supervisor and wait.
async function recordInTheEnd(record: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await record();
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (!['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(code ?? '')) throw error;
      await sleep(1_000);
    }
  }
}

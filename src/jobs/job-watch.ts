import { watchCeilings, type OverCeiling } from './ceilings.ts';
import type { JobSpec } from './job-folder.ts';
import { measureUsage, sandboxView, type JobView } from './job-usage.ts';
import type { Launched } from './launch.ts';

/** Watches a job's ceilings while it runs. */
export interface JobWatch {
  /** Pending for ever while all is well. */
  readonly over: Promise<'ceiling'>;
  found(): OverCeiling | undefined;
  /** Present: it could not be watched, and why. The command goes on all the same. */
  problem(): string | undefined;
  stop(): void;
}

/** Starts to watch. Jobs of an earlier errand have no ceilings. */
export function watchJob(job: Launched, spec: JobSpec, find: () => readonly number[]): JobWatch {
  const stopper = new AbortController();
  let found: OverCeiling | undefined;
  let problem: string | undefined;
  const over = new Promise<'ceiling'>((resolve) => {
    const { ceilings } = spec;
    if (!ceilings) return;
    const measure = () => {
      const view = viewOf(job, spec, find);
      return view && measureUsage(view, ceilings.memoryBytes);
    };
    watchCeilings({ ceilings, measure, signal: stopper.signal }).then(
      (result) => {
        found = result;
        if (result) resolve('ceiling');
      },
      (error: unknown) => (problem = `its memory and processes could not be watched: ${String(error)}`),
    );
  });
  return { over, found: () => found, problem: () => problem, stop: () => stopper.abort() };
}

function viewOf({ status }: Launched, { sandbox }: JobSpec, find: () => readonly number[]): JobView | undefined {
  if (sandbox.kind === 'none') return { proc: '/proc', pids: find, memoryFileBytes: () => 0 };
  return status.initPid === undefined ? undefined : sandboxView(status.initPid, sandbox.argv);
}

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunnableSandbox } from '../sandbox/plan.ts';
import { ownIdentity, type ProcessIdentity } from '../process-identity.ts';
import type { JobCeilings, OverCeiling } from './ceilings.ts';
import { createOnce, flushFolder, makeFolder, readStored, STORED_VERSION, StoredFileError } from './durable-file.ts';

/** How much a job may write. */
export interface OutputCaps {
  /** Bytes kept from the start of the output. */
  readonly headBytes: number;
  /** Bytes kept from its end. */
  readonly tailBytes: number;
  /** A job that writes more than this is killed. */
  readonly flowBytes: number;
}

/** Everything the supervisor needs; written before anyone else can see the job folder. */
export interface JobSpec {
  readonly v: number;
  /** Marks every process of the job in its environment. */
  readonly jobId: string;
  readonly command: string;
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly sandbox: RunnableSandbox;
  readonly caps: OutputCaps;
  /** Missing: claimed by an errand that knew none. */
  readonly ceilings?: JobCeilings;
  readonly claimedBy: ProcessIdentity;
  readonly claimedAt: string;
}

/** Who runs the job. There is one such file, so one supervisor, so at most one run of the command. */
export interface SupervisorRecord {
  readonly v: number;
  /** Null: the job was called off before it started. */
  readonly process: ProcessIdentity | null;
  readonly startedAt: string;
  /** Epoch milliseconds; later attempts do not move it. */
  readonly deadlineMs: number;
}

/** How the job ended. The first one written stands. */
export interface JobExit {
  readonly v: number;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  /** Killed because it wrote too much. */
  readonly outputCapped: boolean;
  /** Present: killed because its processes took too much. */
  readonly overCeiling?: OverCeiling;
  /** Present: it failed, and while it ran the kernel killed something on this machine for want of memory. */
  readonly outOfMemory?: true;
  readonly cancelled: boolean;
  /** The supervisor was lost or told to go: nobody knows how far the command came. */
  readonly interrupted: boolean;
  /** Present: the command never ran, and why. */
  readonly notStarted?: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly totalBytes: number;
  /** Present: something around the command went wrong, its output could not be stored for instance. */
  readonly problem?: string;
  /** Settings the command created although it must not; they were taken out of the workspace. */
  readonly movedAside: readonly string[];
}

export interface JobFiles {
  readonly folder: string;
  readonly spec: string;
  readonly supervisor: string;
  readonly exit: string;
  readonly cancel: string;
  readonly log: string;
  readonly pipe: string;
  readonly aside: string;
}

/** Files of the job that belongs to a call's journal folder. */
export function jobFiles(callFolder: string): JobFiles {
  return filesIn(join(callFolder, 'job'));
}

/** Files of a job folder itself. */
export function filesIn(folder: string): JobFiles {
  const file = (name: string) => join(folder, name);
  return {
    folder,
    spec: file('spec.json'),
    supervisor: file('supervisor.json'),
    exit: file('exit.json'),
    cancel: file('cancel'),
    log: file('supervisor.log'),
    pipe: file('pipe'),
    aside: file('aside'),
  };
}

export function hasJob(callFolder: string): boolean {
  return existsSync(jobFiles(callFolder).folder);
}

/**
 * Claims the job of a call: true for one attempt only. The folder appears with its spec inside, by one rename that
 * fails when the name is taken, so no crash leaves a claim that says nothing.
 */
export async function claimJob(
  callFolder: string,
  job: Pick<JobSpec, 'command' | 'cwd' | 'timeoutMs' | 'sandbox' | 'caps' | 'ceilings'>,
): Promise<boolean> {
  await makeFolder(callFolder);
  const draft = join(callFolder, `.job-${randomUUID()}`);
  await mkdir(draft, { mode: 0o700 });
  const spec: JobSpec = {
    v: STORED_VERSION,
    jobId: randomUUID(),
    ...job,
    claimedBy: ownIdentity(),
    claimedAt: new Date().toISOString(),
  };
  try {
    await createOnce(filesIn(draft).spec, JSON.stringify(spec));
    await rename(draft, jobFiles(callFolder).folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
  await flushFolder(callFolder);
  return true;
}

/** The spec of a claimed job. Throws when it is missing: a claim always has one. */
export async function readSpec(files: JobFiles): Promise<JobSpec> {
  const spec = await readStored<JobSpec>(files.spec);
  if (spec) return spec;
  const problem = `${files.spec} is missing: the job folder was tampered with. Nothing was run.`;
  throw new StoredFileError(problem, { file: files.spec });
}

export function readSupervisor(files: JobFiles): Promise<SupervisorRecord | undefined> {
  return readStored<SupervisorRecord>(files.supervisor);
}

export function readExit(files: JobFiles): Promise<JobExit | undefined> {
  return readStored<JobExit>(files.exit);
}

/** Becomes the one who runs the job, or (null) calls it off. False: somebody was first. */
export function claimSupervision(
  files: JobFiles,
  { process, timeoutMs }: { process: ProcessIdentity | null; timeoutMs: number },
): Promise<boolean> {
  const now = Date.now();
  const record: SupervisorRecord = {
    v: STORED_VERSION,
    process,
    startedAt: new Date(now).toISOString(),
    deadlineMs: now + timeoutMs,
  };
  return createOnce(files.supervisor, JSON.stringify(record));
}

/** Records an ending; answers the one that stands. */
export async function recordExit(files: JobFiles, ending: Partial<JobExit>): Promise<JobExit> {
  const now = new Date().toISOString();
  const exit: JobExit = {
    v: STORED_VERSION,
    exitCode: null,
    signal: null,
    timedOut: false,
    outputCapped: false,
    cancelled: false,
    interrupted: false,
    startedAt: now,
    endedAt: now,
    totalBytes: 0,
    movedAside: [],
    ...ending,
  };
  const isFirst = await createOnce(files.exit, JSON.stringify(exit));
  return isFirst ? exit : ((await readExit(files)) ?? exit);
}

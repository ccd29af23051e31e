import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../process-identity.ts';
import {
  claimSupervision,
  hasJob,
  jobFiles,
  readExit,
  readSpec,
  readSupervisor,
  recordExit,
  type JobFiles,
  type JobSpec,
} from './job-folder.ts';
import { findMarked, killUntilGone, signalAll } from './process-tree.ts';
import { recordInterruption } from './start-or-attach.ts';

/** A job that was claimed and has no ending yet. */
export interface OpenJob {
  /** The call's folder in the effect journal. */
  readonly folder: string;
  readonly runId: string;
  readonly agentId: string;
  readonly command: string;
  readonly claimedAt: string;
}

/** Ends the job of a call, if it has one that is open; returns when no process of it is left. */
export async function cancelJob(callFolder: string): Promise<void> {
  if (!hasJob(callFolder)) return;
  const files = jobFiles(callFolder);
  if (await readExit(files)) return;
  const spec = await readSpec(files);
  try {
    if (await callOff(files, spec)) return;
  } catch (error) {
    // What is to be recorded waits for the disk; the command does not.
    await endProcesses(files, spec);
    throw error;
  }
  await endProcesses(files, spec);
  await recordInterruption(files, spec);
}

/** Tells its supervisor that the job is cancelled; true: it had not started yet, and from now on it cannot. */
async function callOff(files: JobFiles, { timeoutMs }: JobSpec): Promise<boolean> {
  await writeFile(files.cancel, '', { mode: 0o600 });
  if (!(await claimSupervision(files, { process: null, timeoutMs }))) return false;
  await recordExit(files, { cancelled: true, notStarted: 'it was called off' });
  return true;
}

async function endProcesses(files: JobFiles, { jobId }: JobSpec): Promise<void> {
  const supervisor = (await readSupervisor(files))?.process;
  if (supervisor && isAlive(supervisor)) {
    signalAll([supervisor.pid], 'SIGTERM');
    await waitUntil(() => !isAlive(supervisor), STOP_WAIT_MS);
    if (isAlive(supervisor)) signalAll([supervisor.pid], 'SIGKILL');
    await waitUntil(() => !isAlive(supervisor), STOP_WAIT_MS);
  }
  await killUntilGone(() => findMarked(jobId));
}

/**
 * Ends every open job of an agent: `<journal>/<runId>/<agentId>`. `confirm` throws for whoever may no longer do that; it
 * is asked when they are found, so that none of them was begun by a successor.
 */
export async function endJobsOf(agentFolder: string, confirm?: () => Promise<void>): Promise<void> {
  const calls = await foldersIn(agentFolder);
  await confirm?.();
  await Promise.all(calls.map((call) => cancelJob(join(agentFolder, call))));
}

/** Every open job below the journal, of all runs. */
export async function listOpenJobs(journal: string): Promise<readonly OpenJob[]> {
  const found: OpenJob[] = [];
  for (const runId of await foldersIn(journal)) {
    for (const agentId of await foldersIn(join(journal, runId))) {
      for (const call of await foldersIn(join(journal, runId, agentId))) {
        const folder = join(journal, runId, agentId, call);
        const job = await readOpenJob(folder);
        if (job) found.push({ folder, runId, agentId, ...job });
      }
    }
  }
  return found;
}

/** Longer than the grace a command has between TERM and KILL. */
const STOP_WAIT_MS = 8_000;

async function readOpenJob(callFolder: string): Promise<Pick<OpenJob, 'command' | 'claimedAt'> | undefined> {
  const files = jobFiles(callFolder);
  if (!hasJob(callFolder) || existsSync(files.exit)) return undefined;
  const { command, claimedAt } = await readSpec(files);
  return { command, claimedAt };
}

async function foldersIn(path: string): Promise<readonly string[]> {
  if (!existsSync(path)) return [];
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map((entry) => entry.name);
}

async function waitUntil(isDone: () => boolean, limitMs: number): Promise<void> {
  for (const deadline = Date.now() + limitMs; !isDone() && Date.now() < deadline;) await sleep(20);
}

import { existsSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../src/config.ts';
import { jobFiles, type JobSpec, type SupervisorRecord } from '../../src/jobs/job-folder.ts';
import { jobResult } from '../../src/jobs/job-result.ts';
import { findMarked } from '../../src/jobs/process-tree.ts';
import { startOrAttach, type AttachOptions, type Job } from '../../src/jobs/start-or-attach.ts';
import { planSandbox, type SandboxPlan, type SandboxRequest } from '../../src/sandbox/plan.ts';
import { buildPrograms, freshFolder, SUPERVISOR_SOURCE } from './supervisor-program.ts';

/** The bubblewrap of this machine, or null. */
export const BWRAP = loadConfig({ env: process.env }).tools.bwrap.value.path ?? onPath('bwrap') ?? null;

export interface JobBench {
  readonly workspace: string;
  readonly home: string;
  readonly supervisor: string;
  newCall(): string;
  plan(request?: Partial<SandboxRequest>): Promise<SandboxPlan>;
  start(command: string, more?: Partial<Job> & AttachOptions): Promise<Awaited<ReturnType<typeof startOrAttach>>>;
  /** Result text of a command. */
  text(command: string, more?: Partial<Job>): Promise<string>;
}

/** A workspace and a home of their own for the tests of one file. */
export async function openJobBench(mode: SandboxRequest['mode'] = 'workspace-write'): Promise<JobBench> {
  const root = freshFolder('errand-jobs-');
  const { supervisor } = await buildPrograms({ supervisor: SUPERVISOR_SOURCE });
  const workspace = join(root, 'workspace');
  const home = join(root, 'home');
  mkdirSync(workspace);
  mkdirSync(home);
  let calls = 0;
  const newCall = () => join(home, 'journal', 'run', 'agent', `0--t1.${calls++}`);
  const host = { bwrapPath: BWRAP, userHome: homedir(), errandHome: home, env: process.env };
  const plan = (request: Partial<SandboxRequest> = {}) =>
    planSandbox(host, { mode, roots: [workspace], network: false, scratch: join(home, 'scratch'), ...request });
  const start: JobBench['start'] = async (command, more = {}) =>
    startOrAttach(
      { folder: newCall(), command, cwd: workspace, timeoutMs: 20_000, sandbox: await plan(), ...more },
      { supervisorPath: supervisor, pollMs: 50, ...more },
    );
  const text: JobBench['text'] = async (command, more) =>
    (await jobResult(await start(command, more), { spill: async () => '/spilled' })).text;
  return { workspace, home, supervisor, newCall, plan, start, text };
}

/** Polls until the condition holds; fails after ten seconds. */
export async function eventually<Value>(look: () => Value | undefined | Promise<Value | undefined>): Promise<Value> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await sleep(20)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
  }
  throw new Error(`Not within ten seconds: ${look.toString()}`);
}

export async function readJson<Value>(path: string): Promise<Value | undefined> {
  return existsSync(path) ? (JSON.parse(await readFile(path, 'utf8')) as Value) : undefined;
}

/** Pid of the supervisor of a call's job, once it runs. */
export async function supervisorPid(callFolder: string): Promise<number> {
  return eventually(async () => (await readJson<SupervisorRecord>(jobFiles(callFolder).supervisor))?.process?.pid);
}

/** Processes of a call's job that are still alive. */
export async function survivors(callFolder: string): Promise<readonly number[]> {
  const spec = await readJson<JobSpec>(jobFiles(callFolder).spec);
  return spec ? findMarked(spec.jobId) : [];
}

function onPath(name: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

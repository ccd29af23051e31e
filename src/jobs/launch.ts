import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { JobSpec } from './job-folder.ts';
import { JOB_MARKER } from './process-tree.ts';

/** What bubblewrap tells on its status channel. */
export interface SandboxStatus {
  /** First process inside; everything dies with it. */
  initPid?: number;
  /** Present once the command ran to its end. */
  exitCode?: number;
}

export interface Launched {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly status: SandboxStatus;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Starts the command with its output in `output`; throws when there is no process. */
export async function launch(spec: JobSpec, output: number): Promise<Launched> {
  const { file, args, env, cwd } = commandLine(spec);
  const channel = spec.sandbox.kind === 'bwrap' ? (['pipe'] as const) : [];
  const stdio: StdioOptions = ['ignore', output, output, ...channel];
  // Its own session, so that a terminal's or a group's signal never reaches it by accident.
  const child = asFirstVictim(() => spawn(file, args, { stdio, env, cwd, detached: true }));
  const exited = new Promise<Awaited<Launched['exited']>>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await once(child, 'spawn');
  if (child.pid === undefined) throw new Error(`${file} was started without a process id.`);
  return { child, pid: child.pid, exited, status: watchStatus(child) };
}

function commandLine({ sandbox, jobId, command, cwd }: JobSpec) {
  if (sandbox.kind === 'none') {
    return { file: 'bash', args: ['-c', command], env: { ...sandbox.env, [JOB_MARKER]: jobId }, cwd };
  }
  const [file = 'bwrap', ...flags] = sandbox.argv;
  const own = ['--setenv', JOB_MARKER, jobId, '--json-status-fd', '3', '--chdir', cwd];
  // Bubblewrap itself stays visible inside as process 1: its environment holds nothing but the marker.
  return {
    file,
    args: [...flags, ...own, '--', ...sandbox.limits, 'bash', '-c', command],
    env: { [JOB_MARKER]: jobId },
    cwd: '/',
  };
}

function watchStatus(child: ChildProcess): SandboxStatus {
  const status: SandboxStatus = {};
  let text = '';
  child.stdio[3]?.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    status.initPid = numberAfter(text, 'child-pid') ?? status.initPid;
    status.exitCode = numberAfter(text, 'exit-code') ?? status.exitCode;
  });
  return status;
}

function numberAfter(text: string, key: string): number | undefined {
  const digits = new RegExp(`"${key}": *(\\d+)[^\\d]`).exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

// When memory runs out, the kernel should take the command and its children, not the worker or the server. Children
// inherit the mark; this process takes its own back.
function asFirstVictim<Result>(start: () => Result): Result {
  const before = swapOomScore('1000');
  try {
    return start();
  } finally {
    if (before !== undefined) swapOomScore(before);
  }
}

function swapOomScore(score: string): string | undefined {
  const path = '/proc/self/oom_score_adj';
  try {
    const before = readFileSync(path, 'utf8').trim();
    writeFileSync(path, score);
    return before;
  } catch {
    // Not on this system, or not permitted: the job runs without the mark.
    return undefined;
  }
}

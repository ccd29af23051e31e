import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxMode } from '../policy/policy.ts';
import { allowedEnvironment, toolchainHomes } from './environment.ts';
import type { SandboxHost } from './host.ts';
import { isolation, isWithin } from './isolation.ts';
import { secretPaths } from './masks.ts';
import { maskMounts, missingGuarded, mountArguments, rootMounts, type Mount } from './mounts.ts';
import { probeSandbox } from './probe.ts';

/** A command may run: in bubblewrap, or (`full-access`) as it is. JSON: the job folder keeps it. */
export type RunnableSandbox =
  | {
      readonly kind: 'bwrap';
      /** Program and arguments up to the command; the environment is among them. */
      readonly argv: readonly string[];
      /** What stands before the shell: limits on what it may use. */
      readonly limits: readonly string[];
      /** Paths that were not there and must not be there afterwards. */
      readonly guarded: readonly string[];
    }
  | { readonly kind: 'none'; readonly env: Readonly<Record<string, string>> };

/** How a command is contained, or why none may run and what to do about it. */
export type SandboxPlan = RunnableSandbox | { readonly kind: 'refused'; readonly reason: string; readonly fix: string };

export interface SandboxRequest {
  readonly mode: SandboxMode;
  /** Absolute real paths: what may be written in `workspace-write`, seen in `read-only`. */
  readonly roots: readonly string[];
  readonly network: boolean;
  /** Folder of this agent that outlives its commands: their HOME and /tmp. */
  readonly scratch: string;
  /** Folders that may be read although they lie in a masked one: stored results. */
  readonly readable?: readonly string[];
  /** Most processes of a command. Whoever runs it counts them; what stands here is only a net under that. */
  readonly maxProcesses?: number;
}

const PRLIMIT = '/usr/bin/prlimit';
const MIN_THREADS = 4096;

/** HOME inside the sandbox. Below /run, which is empty there, so that no mount point is left behind anywhere. */
export const SANDBOX_HOME = '/run/errand/home';

/** Decides how commands of an agent are contained; tries bubblewrap once per process before it is relied upon. */
export async function planSandbox(host: SandboxHost, request: SandboxRequest): Promise<SandboxPlan> {
  if (request.mode === 'full-access') return { kind: 'none', env: allowedEnvironment(host.env) };
  const problem = rootsProblem(request.roots);
  if (problem) return problem;
  const probe = await probeSandbox(host.bwrapPath);
  if (!probe.contains || host.bwrapPath === null) {
    return {
      kind: 'refused',
      reason: probe.problem ?? 'bubblewrap was not found',
      fix: probe.fix ?? 'Install bubblewrap.',
    };
  }
  await makeScratch(request.scratch);
  return {
    kind: 'bwrap',
    argv: [host.bwrapPath, ...isolation(request.network), ...fileSystem(host, request), ...environment(host)],
    limits: threadLimit(request),
    guarded: request.mode === 'workspace-write' ? missingGuarded(request.roots) : [],
  };
}

// The kernel counts threads per user namespace, so per job; it does not count for root.
function threadLimit({ maxProcesses = 0 }: SandboxRequest): readonly string[] {
  return existsSync(PRLIMIT) ? [PRLIMIT, `--nproc=${Math.max(MIN_THREADS, 2 * maxProcesses)}`] : [];
}

function rootsProblem(roots: readonly string[]): SandboxPlan | undefined {
  const bad = roots.find(
    (root) => isWithin(SANDBOX_HOME, root) || ['/proc', '/dev', '/sys'].some((top) => isWithin(root, top)),
  );
  if (bad === undefined) return undefined;
  return {
    kind: 'refused',
    reason: `the workspace ${bad} cannot be contained`,
    fix: 'Choose a folder of its own as the workspace.',
  };
}

async function makeScratch(scratch: string): Promise<void> {
  await mkdir(join(scratch, 'home'), { recursive: true, mode: 0o700 });
  await mkdir(join(scratch, 'tmp'), { recursive: true, mode: 0o700 });
  await writeFile(emptyFile(scratch), '', { mode: 0o600, flag: 'a' });
}

function emptyFile(scratch: string): string {
  return join(scratch, 'empty');
}

function fileSystem(host: SandboxHost, { mode, roots, scratch, readable = [] }: SandboxRequest): readonly string[] {
  const tmp: Mount = { path: '/tmp', kind: 'replaced', source: join(scratch, 'tmp') };
  const varTmp: Mount = { path: '/var/tmp', kind: 'replaced', source: join(scratch, 'tmp') };
  const writable = mode === 'workspace-write';
  const mounts: readonly Mount[] = [
    tmp,
    ...(existsSync('/var/tmp') ? [varTmp] : []),
    { path: SANDBOX_HOME, kind: 'replaced', source: join(scratch, 'home') },
    ...maskMounts([...secretPaths(host.userHome), host.errandHome, ...(host.masked ?? [])]),
    ...readable.filter((path) => existsSync(path)).map((path) => ({ path, kind: 'readonly' }) as const),
    ...roots.flatMap((root) => (writable ? rootMounts(root) : [{ path: root, kind: 'readonly' } as const])),
  ];
  return mountArguments(mounts, emptyFile(scratch));
}

function environment(host: SandboxHost): readonly string[] {
  const env = {
    ...toolchainHomes(host.env, host.userHome),
    ...allowedEnvironment(host.env),
    HOME: SANDBOX_HOME,
    TMPDIR: '/tmp',
  };
  return ['--clearenv', ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value])];
}

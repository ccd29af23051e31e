import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach } from 'vitest';
import { ensureServer, serverStatus, stopServer, type EnsureServerOptions } from '../../src/server/index.ts';
import { waitUntil } from '../../src/server/wait.ts';

export const FAKE_WORKER = [process.execPath, fileURLToPath(new URL('fake-worker.mjs', import.meta.url))];

export interface WorkerEvent {
  readonly event: 'started' | 'ended' | 'deaf';
  readonly name: string;
  readonly identity: string;
  readonly pid: number;
  readonly address?: string;
  readonly model?: string;
  readonly secret?: string;
  readonly isServerUp?: boolean;
}

const homes: string[] = [];

afterEach(async () => {
  for (const home of homes.splice(0)) {
    await stopServer({ home, log: () => undefined });
    rmSync(home, { recursive: true, force: true });
  }
});

/** A home of its own, stopped and removed after the test. */
export function freshHome(name = 'errand-home-'): string {
  const home = mkdtempSync(join(tmpdir(), name));
  homes.push(home);
  return home;
}

/** Options for `ensureServer` with the stand-in for the worker; `lines` collects what it says. */
export function optionsFor(home: string, more: Partial<EnsureServerOptions> = {}) {
  const lines: string[] = [];
  const environment = { ...process.env, ERRAND_HOME: home };
  const fixed = { home, workerCommand: FAKE_WORKER, buildId: 'test-build', graceMs: 2000, environment };
  return { ...fixed, log: (line: string) => void lines.push(line), lines, ...more };
}

export function workerEvents(home: string): WorkerEvent[] {
  const file = join(home, 'worker-events.jsonl');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as WorkerEvent);
}

export async function embedded(home: string) {
  const { instances } = await serverStatus({ home });
  const [instance] = instances;
  if (!instance) throw new Error(`nothing is known of a server in ${home}`);
  return instance;
}

/** Fails by name when the condition does not come true. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within 15 s: ${what}`);
    await waitUntil(() => false, { timeoutMs: 20 });
  }
}

export { ensureServer, stopServer };

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { ensureServer, stopServer } from '../../src/server/index.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A Temporal server for all tests that need no server of their own: keep apart by task queue and workflow id. */
    temporalAddress: string;
  }
}

let home = '';

/** Before the tests with a server: what they run is built, and one Temporal server is there. */
export async function setup(project: TestProject): Promise<void> {
  execFileSync(process.execPath, ['scripts/setup.mjs'], { stdio: ['ignore', 'inherit', 'inherit'] });
  home = mkdtempSync(join(tmpdir(), 'errand-test-server-'));
  const info = await ensureServer({ home, workers: 0, buildId: 'tests', log: (line) => console.error(line) });
  project.provide('temporalAddress', info.address);
}

export async function teardown(): Promise<void> {
  await stopServer({ home, log: () => undefined });
  rmSync(home, { recursive: true, force: true });
}

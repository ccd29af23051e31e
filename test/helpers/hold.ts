import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InlineStep } from '../../src/simulator/index.ts';
import type { Harness } from './harness.ts';
import { waitFor } from './wait.ts';

/** A step whose command runs until `release`: time for a test to change the world between two steps of a run. */
export function hold(name: string): InlineStep {
  return { calls: [{ name: 'bash', input: { command: `until [ -e go-${name} ]; do sleep 0.1; done` } }] };
}

export async function whenHeld(harness: Harness, name: string): Promise<void> {
  await waitFor(`the run to hold at ${name}`, () => harness.processesIn(`go-${name}`).length > 0, 60_000);
}

export async function release(harness: Harness, name: string): Promise<void> {
  await writeFile(join(harness.workspace, `go-${name}`), '');
}

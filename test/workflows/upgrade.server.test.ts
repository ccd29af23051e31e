import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { buildCommit, previousCommit } from '../helpers/previous-build.ts';
import { waitFor } from '../helpers/wait.ts';

const commit = previousCommit();

/** Stopped in its third turn: reads and an effect behind it, a command under way, a child and more turns before it. */
const prompt = toScriptPrompt(
  [
    { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] },
    { calls: [{ name: 'edit', input: { file_path: 'a.txt', old_string: 'alpha', new_string: 'beta' } }] },
    { calls: [{ name: 'bash', input: { command: 'echo once-upgraded >> count.txt; sleep 5; echo all of it' } }] },
    {
      expect: { exitCode: 0, includes: 'all of it' },
      calls: [
        { name: 'task', input: { description: 'reads it once more', prompt: toScriptPrompt([{ text: 'read' }]) } },
      ],
    },
    { expect: { includes: 'read', isError: false }, text: 'finished by the newer one' },
  ],
  'upgraded',
);

it.skipIf(commit === undefined)(
  `promise 10: a run started by commit ${commit ?? '(none here: no git history, see the kept histories)'} is finished by this code`,
  async ({ skip }) => {
    const previous = await buildCommit(commit ?? '');
    if ('problem' in previous) return skip(`${previous.problem}; only the kept histories show that upgrades are safe`);
    const harness = await createHarness({ workers: 0 });
    try {
      await harness.write('a.txt', 'alpha\n');
      const worker = await harness.startWorker({}, previous.dist);
      const run = await startWith(previous.dist, harness);
      await waitFor('the command to run', () => harness.processesIn('once-upgraded').length > 0);
      await worker.kill('SIGKILL');
      await harness.startWorker();
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'finished by the newer one', turns: 5 });
      expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('beta\n');
      expect(await readFile(join(harness.workspace, 'count.txt'), 'utf8')).toBe('once-upgraded\n');
      expect(harness.simulator.ledger().map(({ outcome }) => outcome)).toEqual(Array(6).fill('complete'));
    } finally {
      await harness.close();
      previous.remove();
    }
  },
  150_000,
);

/** The older command line starts the run, so that input and files are the older ones. It starts no worker of its own. */
async function startWith(dist: string, harness: Harness): Promise<Run> {
  const { TEMPORAL_ADDRESS, ...environment } = harness.environment;
  const args = ['run', '--detach', '--json', '--id', 'upgraded', '--workspace', harness.workspace, prompt];
  const { stdout } = await promisify(execFile)(process.execPath, [join(dist, 'cli/main.js'), ...args], {
    env: { ...environment, ERRAND_TEMPORAL_ADDRESS: TEMPORAL_ADDRESS },
  });
  expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ type: 'run', run: 'upgraded' });
  const { memo } = await harness.client.workflow.getHandle('upgraded').describe();
  return harness.runOf('upgraded', String(memo?.['transcript']));
}

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { waitFor } from '../helpers/wait.ts';

/** One line in the file is one real execution. */
const count = (seconds: number, mark: string) => ({
  calls: [{ name: 'bash', input: { command: `echo ${mark} >> count.txt; sleep ${seconds}; echo all of it` } }],
});

describe('kill -9 of all workers', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 2 });
    await harness.write('a.txt', 'one\ntwo\n');
  }, 60_000);

  afterEach(() => harness.close());

  it('promise 3: in a model call, no recorded reply is asked for again', async () => {
    const prompt = toScriptPrompt(
      [count(0, 'first'), { text: 'done', fault: { betweenMs: 400, times: 1 } }],
      'killed in a model call',
    );
    const run = await harness.run(prompt);
    await waitFor('the second call to be answered', () => openAt(harness, 2));
    await killAll(harness);
    expect(await afterRestart(harness, run)).toMatchObject({ status: 'completed', preview: 'done' });
    expect(turnsAsked(harness)).toEqual([1, 2, 2]);
    expect(await counted(harness)).toEqual(['first']);
    const { unsettled } = usageOf(await harness.records(run));
    expect(unsettled).toMatchObject([{ turn: 2, attempt: 1 }]);
  }, 90_000);

  it('promise 2: in a bash call, the command runs once and its output is whole', async () => {
    const prompt = toScriptPrompt(
      [count(6, 'once-only'), { expect: { exitCode: 0, includes: 'all of it' }, text: 'done' }],
      'killed in a command',
    );
    const run = await harness.run(prompt);
    await waitFor('the command to run', () => harness.processesIn('once-only').length > 0);
    await killAll(harness);
    expect(await afterRestart(harness, run)).toMatchObject({ status: 'completed', preview: 'done' });
    expect(turnsAsked(harness)).toEqual([1, 2]);
    expect(await counted(harness)).toEqual(['once-only']);
  }, 90_000);

  it('promise 1: around an edit, it is made once', async () => {
    const edit = { name: 'edit', input: { file_path: 'a.txt', old_string: 'two', new_string: 'two and more' } };
    const prompt = toScriptPrompt(
      [
        { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] },
        { calls: [edit] },
        { expect: { isError: false }, text: 'done' },
      ],
      'killed in an edit',
    );
    const run = await harness.run(prompt);
    await waitFor('the edit to be dispatched', async () =>
      (await harness.records(run)).some(
        (record) => record.type === 'message' && record.role === 'assistant' && record.turn === 2,
      ),
    );
    await killAll(harness);
    expect(await afterRestart(harness, run)).toMatchObject({ status: 'completed', preview: 'done' });
    expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('one\ntwo and more\n');
    expect(new Set(turnsAsked(harness)).size).toBe(3);
  }, 90_000);
});

function openAt(harness: Harness, turn: number): boolean {
  return harness.simulator.ledger().some((entry) => entry.outcome === 'open' && entry.turn === turn);
}

function turnsAsked(harness: Harness): number[] {
  return harness.simulator.ledger().map(({ turn }) => turn);
}

async function counted(harness: Harness): Promise<string[]> {
  return (await readFile(join(harness.workspace, 'count.txt'), 'utf8')).trim().split('\n');
}

async function killAll(harness: Harness): Promise<void> {
  await Promise.all(harness.workers.map((worker) => worker.kill('SIGKILL')));
}

async function afterRestart(harness: Harness, run: Run) {
  await harness.startWorker();
  return run.result();
}

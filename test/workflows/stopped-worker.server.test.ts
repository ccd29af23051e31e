import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { runFolder } from '../../src/store/layout.ts';
import { usageOf } from '../../src/store/usage.ts';
import { folderState } from '../helpers/folder-state.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run, Worker } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';
import { openLine } from '../helpers/line.ts';
import type { Line } from '../helpers/line.ts';
import { waitFor } from '../helpers/wait.ts';

const LONG_MS = 90_000;

/** A shorter sleep has cost nobody an attempt, and is not looked for. */
const NOTICED_MS = 6_000;

const PRELOAD = `--import=${join(import.meta.dirname, '../helpers/stop-at.mjs')}`;

/** Its first request is slow enough to be under way when the worker stops; the next ones are quick. */
const slowOnce = toScriptPrompt([{ text: 'a few words that take their time', fault: { betweenMs: 500, times: 1 } }]);

/** The attempt that takes over is still waiting for its answer when the first one wakes up. */
const slowTwice = toScriptPrompt([
  {
    text: 'whose answer is it',
    fault: [
      { betweenMs: 3_000, times: 1 },
      { delayMs: 20_000, times: 1 },
    ],
  },
]);

const command = toScriptPrompt([
  { calls: [{ name: 'bash', input: { command: 'echo x >> count.txt; sleep 5; echo all of it' } }] },
  { expect: { exitCode: 0, includes: 'all of it' }, text: 'done' },
]);

const edits = toScriptPrompt([
  { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] },
  { calls: [{ name: 'edit', input: { file_path: 'a.txt', old_string: 'two', new_string: 'three' } }] },
  // Back again: to a late attempt the file looks as if nothing had been done.
  { calls: [{ name: 'edit', input: { file_path: 'a.txt', old_string: 'three', new_string: 'two' } }] },
  { expect: { isError: false }, text: 'done' },
]);

const short = toScriptPrompt([{ calls: [{ name: 'read', input: { file_path: 'a.txt' } }] }, { text: 'done' }]);

describe('promise 2: a worker that was stopped past the time-out and goes on', () => {
  let harness: Harness;
  let line: Line;
  let stopped: Worker;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0, config: 'limits: {reconcileMs: 1000}' });
    line = await openLine(inject('temporalAddress'));
    await harness.write('a.txt', 'one\ntwo\n');
  }, 60_000);

  afterEach(async () => {
    await harness.close();
    await line.close();
  });

  it(
    'in model calls, a command and an edit writes nothing but what it has spent, and does nothing',
    async () => {
      await startWorkerThatStops('rename a\\.txt$');
      const answering = await harness.run(slowOnce);
      const waiting = await harness.run(slowTwice);
      const running = await harness.run(command);
      await waitFor('both model calls and the command to be under way', () => {
        const open = harness.simulator.ledger().filter(({ outcome }) => outcome === 'open');
        return open.length === 2 && harness.processesIn('all of it').length > 0;
      });
      const editing = await harness.run(edits);
      await isStopped();
      await harness.startWorker();
      for (const run of [answering, running, editing]) {
        expect(await run.result()).toMatchObject({ status: 'completed' });
      }
      await waitFor(
        'the second attempt of the other to be recorded',
        async () => (await attempts(waiting)).some((attempt) => attempt > 1),
        LONG_MS,
      );
      const before = snapshot([answering, running, editing, waiting]);

      await goOn();
      const { added, ...after } = snapshotSince(before, [answering, running, editing, waiting]);
      expect(added.map(({ type }) => type).filter((type) => type !== 'usage')).toEqual([]);
      expect(added.length).toBeGreaterThan(0);
      expect(after).toEqual(before.state);
      expect(await waiting.result()).toMatchObject({ status: 'completed' });
      expect(await attempts(waiting)).toHaveLength(2);
      expect(await readFile(join(harness.workspace, 'count.txt'), 'utf8')).toBe('x\n');
      expect(await readFile(join(harness.workspace, 'a.txt'), 'utf8')).toBe('one\ntwo\n');
      expect(usageOf(await harness.records(answering)).unsettled.length).toBeLessThanOrEqual(1);
    },
    2 * LONG_MS,
  );

  it.each([
    ['opening its transcript', 'stat /workspace$'],
    ['closing its agent', 'rm /scratch$'],
  ])(
    'in %s writes nothing and does nothing',
    async (_, stopAt) => {
      await startWorkerThatStops(stopAt);
      const run = await harness.run(short);
      await isStopped();
      await harness.startWorker();
      expect(await run.result()).toMatchObject({ status: 'completed' });
      const before = snapshot([run]);
      await goOn();
      expect(snapshot([run])).toEqual(before);
    },
    2 * LONG_MS,
  );

  it.each([
    ['closing an agent', (run: Run) => run.handle.cancel()],
    ['ending a lost one', (run: Run) => run.handle.terminate()],
  ])(
    'in %s that is reset meanwhile ends no command of what came after',
    async (_, stop) => {
      await startWorkerThatStops('readdir /journal/[^/]+/[^/]+$');
      const run = await harness.run(toScriptPrompt([hold('reset'), { expect: { exitCode: 0 }, text: 'done' }]));
      await whenHeld(harness, 'reset');
      await stop(run);
      await isStopped();
      const awakeAt = Date.now() + NOTICED_MS;
      await harness.startWorker();
      await resetToStart(run);
      await whenHeld(harness, 'reset');
      await waitFor('it to have slept', () => Date.now() > awakeAt);
      await goOn();
      expect(harness.processesIn('go-reset')).not.toEqual([]);
      await release(harness, 'reset');
      expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    },
    2 * LONG_MS,
  );

  async function resetToStart(run: Run): Promise<void> {
    const { events } = await run.handle.fetchHistory();
    await harness.client.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: run.runId },
      reason: 'test',
      workflowTaskFinishEventId: events?.find((event) => event.workflowTaskCompletedEventAttributes)?.eventId,
      requestId: crypto.randomUUID(),
    });
  }

  async function startWorkerThatStops(stopAt: string): Promise<void> {
    const STOP_MARK = join(harness.workspace, '../stopped');
    const TEMPORAL_ADDRESS = line.address;
    stopped = await harness.startWorker({ NODE_OPTIONS: PRELOAD, STOP_AT: stopAt, STOP_MARK, TEMPORAL_ADDRESS });
  }

  /** Cuts its line, too: the open polls of a stopped worker swallow tasks for a minute, which only takes time. */
  async function isStopped(): Promise<void> {
    await waitFor('the worker to stop', () => existsSync(join(harness.workspace, '../stopped')));
    line.cut();
  }

  /** Its end is graceful: when it is gone, everything that it would ever do is done. */
  async function goOn(): Promise<void> {
    stopped.process.kill('SIGCONT');
    await stopped.kill('SIGTERM');
  }

  interface Snapshot {
    readonly lines: readonly (readonly string[])[];
    readonly state: { readonly journal: unknown; readonly workspace: unknown; readonly files: unknown };
  }

  /** Journal, workspace and all files of the runs but their transcripts, whose lines are kept apart. */
  function snapshot(runs: readonly Run[]): Snapshot {
    const files = runs.map(({ stem }) => folderState(runFolder(harness.home, stem)));
    return {
      lines: runs.map(({ stem }) => readFileSync(`${runFolder(harness.home, stem)}.jsonl`, 'utf8').split('\n')),
      state: { journal: folderState(join(harness.home, 'journal')), workspace: folderState(harness.workspace), files },
    };
  }

  function snapshotSince(before: Snapshot, runs: readonly Run[]) {
    const { lines, state } = snapshot(runs);
    const added = lines.flatMap((all, index) => all.slice((before.lines[index]?.length ?? 0) - 1)).filter(Boolean);
    return { added: added.map((line) => JSON.parse(line) as { type: string }), ...state };
  }

  async function attempts(run: Run): Promise<readonly number[]> {
    return (await harness.records(run)).flatMap((record) =>
      record.type === 'attempt' ? [record.activityAttempt] : [],
    );
  }
});

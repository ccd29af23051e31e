import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { steer } from '../../src/client.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { ERRAND_VERSION } from '../../src/version.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run, RunOptions } from '../helpers/harness.ts';
import { withOwnServer } from '../helpers/own-server.ts';
import type { KeptHistory } from '../helpers/replay.ts';
import { waitFor } from '../helpers/wait.ts';
import { withoutMachine } from './without-machine.ts';

/*
 * Records one history of every kind for this version of errand:
 *
 *   npm run build && npx vite-node test/histories/record.ts [--replace] [kind ...]
 *
 * A file that is there stays: histories are only ever added to. `--replace` is for a version that nobody has yet.
 */

const FOLDER = join(import.meta.dirname, ERRAND_VERSION);
const mayReplace = process.argv.includes('--replace');
const wanted = process.argv.slice(2).filter((arg) => !arg.startsWith('-'));

interface Job {
  readonly prompt: string;
  readonly options?: RunOptions;
  /** What happens to the run from outside. */
  readonly meanwhile?: (harness: Harness, run: Run) => Promise<void>;
  /** Names of the files, for the histories in the order in which they began. Default: the job's, numbered. */
  readonly names?: readonly string[];
}

const read = { calls: [{ name: 'read', input: { file_path: 'a.txt' } }] };
const search = { calls: [{ name: 'grep', input: { pattern: 'word {{turn}}' } }] };
const shell = (command: string) => ({ name: 'bash', input: { command } });
const task = (description: string, prompt: string) => ({ name: 'task', input: { description, prompt } });
const leaf = toScriptPrompt([read, { text: 'the leaf is done' }], 'leaf');
const failing = toScriptPrompt([{ text: 'x', fault: { status: 403 } }], 'fails');

const JOBS: Readonly<Record<string, Job>> = {
  plain: { prompt: toScriptPrompt([{ text: 'done' }], 'plain') },
  tools: {
    prompt: toScriptPrompt(
      [
        { calls: [{ name: 'todo_write', input: { todos: [{ content: 'edit it', status: 'in_progress' }] } }] },
        { calls: [...read.calls, { name: 'glob', input: { pattern: '*.txt' } }] },
        {
          calls: [
            { name: 'edit', input: { file_path: 'a.txt', old_string: 'alpha', new_string: 'beta' } },
            ...read.calls,
            shell('wc -l a.txt'),
            { name: 'no_such_tool', input: {} },
          ],
        },
        { text: 'half ', stopReason: 'max_tokens' },
        { text: 'done' },
      ],
      'tools',
    ),
  },
  tree: {
    prompt: toScriptPrompt(
      [{ calls: [task('reads one of them', leaf), task('reads the other one', leaf)] }, { text: 'all done' }],
      'tree',
    ),
    names: ['tree-root', 'tree-child-1', 'tree-child-2'],
  },
  'child-failure': {
    prompt: toScriptPrompt([{ calls: [task('is not allowed to', failing)] }, { text: 'never mind' }], 'child failure'),
    names: ['child-failure-root', 'child-failure-child'],
  },
  cancel: {
    prompt: toScriptPrompt(
      [{ calls: [task('sleeps for a while', toScriptPrompt([{ calls: [shell('sleep 300')] }], 'sleeper'))] }],
      'cancelled',
    ),
    meanwhile: async (harness, run) => {
      await reached(harness, run, 'sleep 300');
      await run.handle.cancel();
    },
    names: ['cancel-root', 'cancel-child'],
  },
  timeout: {
    prompt: toScriptPrompt([{ calls: [shell('sleep 300')] }, { text: 'so far' }], 'timeout'),
    options: { timeoutMs: 2_000 },
  },
  'max-turns': { prompt: toScriptPrompt([{ ...search, repeat: 5 }], 'max turns'), options: { maxTurns: 2 } },
  steering: {
    prompt: toScriptPrompt([{ calls: [shell('sleep 2')] }, { text: 'heard' }], 'steering'),
    meanwhile: async (harness, run) => {
      await reached(harness, run, 'sleep 2');
      await steer(harness.client, run.runId, 'please hurry');
    },
  },
  'continue-as-new': {
    prompt: toScriptPrompt([{ ...search, repeat: 4 }, { text: 'done' }], 'continue as new'),
    options: { historyEvents: 30 },
  },
  crash: {
    prompt: toScriptPrompt([{ calls: [shell('sleep 3; echo done')] }, { text: 'survived' }], 'crash'),
    meanwhile: async (harness, run) => {
      await reached(harness, run, 'sleep 3');
      await harness.workers.at(-1)?.kill('SIGKILL');
      await harness.startWorker();
    },
  },
  reset: {
    prompt: toScriptPrompt([read, search, { text: 'done' }], 'reset'),
    meanwhile: async (harness, run) => {
      await run.result();
      await resetToSecondTurn(harness, run);
    },
    names: ['reset-before', 'reset-after'],
  },
};

await withOwnServer(async (address) => {
  await mkdir(FOLDER, { recursive: true });
  for (const [name, job] of Object.entries(JOBS)) {
    if (wanted.length === 0 || wanted.includes(name)) await recordJob(address, name, job);
  }
});

/** A home of its own each: its histories are the job's, nothing else. */
async function recordJob(address: string, name: string, job: Job): Promise<void> {
  const harness = await createHarness({ address, workers: 1 });
  try {
    await harness.write('a.txt', 'alpha\n');
    const run = await harness.run(job.prompt, { id: name, ...job.options });
    await job.meanwhile?.(harness, run);
    const ending = await run.result().then(
      ({ status }) => status,
      (error: unknown) => String(error),
    );
    const histories = (await harness.histories()).toSorted((a, b) => times(a).localeCompare(times(b)));
    for (const [index, history] of histories.entries()) {
      const file = job.names?.[index] ?? (histories.length === 1 ? name : `${name}-${index + 1}`);
      await keep(join(FOLDER, `${file}.json`), history);
    }
    console.log(`${name}: ${ending}, ${histories.length} histories`);
  } finally {
    await harness.close();
  }
}

async function keep(file: string, { history }: KeptHistory): Promise<void> {
  if (existsSync(file) && !mayReplace) {
    console.log(`${file} is there and stays`);
    return;
  }
  const kept = withoutMachine(history, dirname(dirname(import.meta.dirname)));
  await writeFile(file, `${JSON.stringify(kept)}\n`);
}

/** When it began; when it ended, for a reset run begins with the events of the one before. */
function times({ history }: KeptHistory): string {
  const { events } = history as { events: { eventTime: string }[] };
  return `${events[0]?.eventTime} ${events.at(-1)?.eventTime}`;
}

/** Waits until a reply of some agent of the run has this in it: what it asks for is being done. */
async function reached(harness: Harness, run: Run, text: string): Promise<void> {
  await waitFor(`a call with ${text}`, async () => {
    const replies = (await harness.allRecords(run)).filter((record) => 'calls' in record);
    return JSON.stringify(replies.map(({ calls }) => calls)).includes(text);
  });
}

/** As the reset button of the UI does it. */
async function resetToSecondTurn(harness: Harness, run: Run): Promise<void> {
  const { events } = await run.handle.fetchHistory();
  const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
  const { namespace } = harness.temporal;
  const { runId } = await run.handle.describe();
  await harness.client.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: { workflowId: run.runId, runId },
    reason: 'for a kept history',
    requestId: `${run.runId}-${Date.now()}`,
    workflowTaskFinishEventId: tasks[2]?.eventId,
  });
}

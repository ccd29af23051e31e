import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { steer } from '../../src/client.ts';
import { toMarker, toScriptPrompt } from '../../src/simulator/index.ts';
import type { Call, Play } from '../../src/simulator/index.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { hold, release, whenHeld } from '../helpers/hold.ts';

/** Far over the 2 MiB that the server takes in one payload. */
const HUGE = 3_000_000;
/** Most that one result may add to what the model is sent. */
const MAX_RESULT_BYTES = 130 * 1024;
/** Most that anything may add to a history at once. */
const MAX_PAYLOAD_BYTES = 128 * 1024;

const flood = (mark: string): Call => ({
  name: 'bash',
  input: { command: `echo ${mark} >> count.txt; head -c 20000000 /dev/zero | tr '\\0' x` },
});

const CALLS: Readonly<Record<string, readonly Call[]>> = {
  'outputs of 20 MB': [flood('one'), flood('two'), flood('three')],
  'a prompt for a child': [{ name: 'task', input: { description: 'far too much', prompt: 'x'.repeat(HUGE) } }],
  'an item of a todo list': [
    { name: 'todo_write', input: { todos: [{ content: 'x'.repeat(HUGE), status: 'pending' }] } },
  ],
  'a todo list of wrong items': [{ name: 'todo_write', input: { todos: Array(30_000).fill({ done: 1 }) } }],
  'unknown keys': [
    {
      name: 'read',
      input: Object.fromEntries(Array.from({ length: 30_000 }, (_, n) => [`a key that nobody knows, number ${n}`, n])),
    },
  ],
  'the longest todo list, 64 times': Array.from({ length: 64 }, () => ({
    name: 'todo_write',
    input: { todos: Array(50).fill({ content: '\u0001'.repeat(200), status: 'pending' }) },
  })),
  'the longest command, of wide characters': [
    { name: 'bash', input: { command: `echo ran >> wide.txt; # ${'\u{1f600}'.repeat(14_900)}` } },
  ],
  'what a child says': [
    { name: 'task', input: { description: 'says far too much', prompt: toMarker('sizes', { what: 'said' }) } },
  ],
};

const sizes: Play = ({ args: { what = '' }, turn }) => {
  // Stop reasons by hand: else the simulator cuts what is longer than was asked for.
  if (what === 'said') return { text: 'x'.repeat(HUGE), stopReason: 'end_turn' };
  return turn === 1 ? { calls: CALLS[what] ?? [], stopReason: 'tool_use' } : { text: 'went on' };
};

describe('what is too large for the server', () => {
  let harness: Harness;

  beforeAll(async () => {
    const models = { 'sim-1': { maxInputTokens: 9_000_000, maxTokens: 2_000_000 } };
    harness = await createHarness({ simulator: { scenarios: { sizes }, models } });
  }, 60_000);

  afterAll(() => harness.close());

  it.each(Object.keys(CALLS))(
    'promise 2: %s: ends in a result that fits, and nothing is done again',
    async (what) => {
      const run = await harness.run(`${toMarker('sizes', { what })} go`);
      expect(await run.result()).toMatchObject({
        status: 'completed',
        preview: 'went on',
        usage: { own: { requests: 2 } },
      });
      expect(Math.max(...(await resultBytes(run)))).toBeLessThan(MAX_RESULT_BYTES);
      expect(await largestEvent(run)).toBeLessThan(MAX_PAYLOAD_BYTES);
    },
    90_000,
  );

  it('promise 2: the commands with the large outputs ran once', async () => {
    expect((await readFile(join(harness.workspace, 'count.txt'), 'utf8')).split('\n').slice(0, -1)).toEqual([
      'one',
      'two',
      'three',
    ]);
  });

  async function resultBytes(run: Run): Promise<number[]> {
    const records = await harness.records(run);
    const blocks = records.flatMap((record) =>
      record.type === 'message' && record.role === 'user' ? record.content : [],
    );
    return blocks.map(({ content }) => Buffer.byteLength(typeof content === 'string' ? content : ''));
  }

  async function largestEvent(run: Run): Promise<number> {
    const { events } = await run.handle.fetchHistory();
    return Math.max(...(events ?? []).map((event) => JSON.stringify(event).length));
  }
});

it('promise 1: results of one turn that are more than the context window do not end the run', async () => {
  const harness = await createHarness({ workers: 1 });
  try {
    const lines = Array.from({ length: 1_500 }, (_, line) => `${line} ${'word '.repeat(10)}`).join('\n');
    const files = Array.from({ length: 20 }, (_, n) => `big-${n}.txt`);
    for (const file of files) await harness.write(file, lines);
    const reads = files.map((file_path) => ({ name: 'read', input: { file_path } }));
    const run = await harness.run(toScriptPrompt([{ calls: reads }, { text: 'went on' }], 'reads it all'));
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'went on' });
    const asked = JSON.stringify(harness.simulator.ledger().at(-1)?.messages);
    expect(asked.match(/Result removed to save context/g)?.length).toBeLessThan(files.length);
  } finally {
    await harness.close();
  }
}, 60_000);

it('promise 1: a message that is too large for the server is refused with what to do, and the run goes on', async () => {
  const harness = await createHarness({ workers: 1 });
  try {
    const run = await harness.run(toScriptPrompt([hold('message'), { text: 'went on' }], 'spoken to'));
    await whenHeld(harness, 'message');
    for (const bytes of [100_000, HUGE, 5_000_000]) {
      expect(await steer(harness.client, run.runId, 'x'.repeat(bytes))).toMatchObject({
        done: false,
        reason: expect.stringContaining('put longer text in a file') as string,
      });
    }
    await release(harness, 'message');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'went on' });
  } finally {
    await harness.close();
  }
}, 60_000);

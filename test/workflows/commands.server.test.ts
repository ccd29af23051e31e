import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { createHarness, type Harness, type Run } from '../helpers/harness.ts';

const CONFIG = 'limits:\n  commandMemoryBytes: 268435456\n  commandProcesses: 40\n';

// Every command ends by itself, well below what could hurt the machine.
const COMMANDS = {
  floods: 'yes',
  bytes: 'cat /dev/urandom',
  zeros: 'head -c 100M /dev/zero',
  eats: 'echo begun; { head -c 500M /dev/zero; sleep 20; } | tail > /dev/null',
  forks: 'for i in {1..60}; do sleep 20 & done; wait',
  behaves: 'sleep 4; echo unharmed',
};

describe('commands that take all they can, six at once on one worker with a small heap', () => {
  let harness: Harness;
  const results = new Map<string, string>();

  beforeAll(async () => {
    harness = await createHarness({ config: CONFIG, env: { NODE_OPTIONS: '--max-old-space-size=512' } });
    const runs = Object.entries(COMMANDS).map(async ([name, command]) => {
      const call = { name: 'bash', input: { command, timeout_ms: 15_000 } };
      const run = await harness.run(toScriptPrompt([{ calls: [call] }, { text: 'seen' }], name));
      expect(await run.result()).toMatchObject({ status: 'completed' });
      results.set(name, await resultOf(run));
    });
    await Promise.all(runs);
  }, 120_000);

  afterAll(() => harness.close());

  async function resultOf(run: Run): Promise<string> {
    const records = await harness.records(run);
    return JSON.stringify(records.filter((record) => record.type === 'message' && record.role === 'user').at(-1));
  }

  it.each([
    ['floods', /killed: it wrote more than 268435456 bytes of output/],
    ['bytes', /killed: it wrote more than 268435456 bytes of output/],
    ['zeros', /bytes of 104857600 were not kept|characters cut here.*exit code: 0/],
    ['eats', /begun\\nended: it used more than 256 MiB of memory \(limits.commandMemoryBytes\)/],
    ['forks', /ended: it had more than 40 processes \(limits.commandProcesses\)/],
    ['behaves', /unharmed\\nexit code: 0/],
  ])('one that %s is told as what it did', (name, text) => {
    expect(results.get(name)).toMatch(text);
  });

  it('none of it costs the worker its life or an attempt of anybody its heartbeat', async () => {
    expect(harness.workers.map(({ process }) => process.exitCode ?? process.signalCode)).toEqual([null]);
    const histories = JSON.stringify(await harness.histories());
    expect(histories).toContain('EVENT_TYPE_ACTIVITY_TASK_COMPLETED');
    expect(histories).not.toMatch(/EVENT_TYPE_ACTIVITY_TASK_(TIMED_OUT|FAILED)/);
    expect(histories).not.toMatch(/"attempt":(?!1\b)\d/);
  });

  it('leaves nothing behind', () => {
    expect(harness.processesIn('')).toEqual([]);
  });
});

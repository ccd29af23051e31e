import { describe, expect, it } from 'vitest';
import { nextPauseMs } from '../../src/jobs/ceilings.ts';
import { claimJob } from '../../src/jobs/job-folder.ts';
import { measureUsage, sandboxView } from '../../src/jobs/job-usage.ts';
import { jobResult } from '../../src/jobs/job-result.ts';
import { DEFAULT_CAPS } from '../../src/jobs/start-or-attach.ts';
import { BWRAP, openJobBench, survivors } from './job-bench.ts';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const CEILINGS = { memoryBytes: 200 * MIB, processes: 50 };

// Every command here comes to an end of its own, well below what could hurt the machine.
const MODES = [
  ['bubblewrap', 'workspace-write'],
  ['no sandbox', 'full-access'],
] as const;

describe.each(MODES)('a command in %s', async (name, mode) => {
  const isMissing = name === 'bubblewrap' && BWRAP === null;
  const bench = await openJobBench(mode);

  it.skipIf(isMissing)('that uses too much memory is ended, told so, and leaves others alone', async () => {
    const folder = bench.newCall();
    const hungry = 'echo begun; { head -c 400M /dev/zero; sleep 15; } | tail > /dev/null';
    const other = bench.text('sleep 1; echo unharmed', { ceilings: CEILINGS });
    const outcome = await bench.start(hungry, { folder, ceilings: CEILINGS });
    const { text, isError } = await jobResult(outcome, { spill: async () => '/spilled' });
    expect(text).toBe(
      'begun\nended: it used more than 200 MiB of memory (limits.commandMemoryBytes); the whole process tree was killed',
    );
    expect(isError).toBe(true);
    expect(outcome.exit.overCeiling).toMatchObject({ of: 'memory', limit: CEILINGS.memoryBytes });
    expect(outcome.exit.overCeiling?.used).toBeGreaterThan(CEILINGS.memoryBytes);
    expect(await survivors(folder)).toEqual([]);
    expect(await other).toBe('unharmed\nexit code: 0');
  });

  it.skipIf(isMissing)('may share more memory among its processes than it has in all', async () => {
    const fork = 'for i in 1 2 3 4 5 6 7 8; do (sleep 1; exit 0) & done; wait';
    const command = `x=$(head -c 50000000 /dev/zero | tr '\\0' a); ${fork}; echo \${#x}`;
    const ceilings = { ...CEILINGS, memoryBytes: 320 * MIB };
    expect(await bench.text(command, { ceilings })).toBe('50000000\nexit code: 0');
  });

  it.skipIf(isMissing)('that starts too many processes is ended, also those that left its session', async () => {
    const folder = bench.newCall();
    const command = 'for i in {1..60}; do sleep 15 & (setsid sleep 15 &); done; wait; sleep 15';
    const { exit } = await bench.start(command, { folder, ceilings: CEILINGS });
    expect(exit.overCeiling).toMatchObject({ of: 'processes', limit: 50 });
    expect(exit.overCeiling?.used).toBeGreaterThan(50);
    expect(await survivors(folder)).toEqual([]);
  });

  it.skipIf(isMissing)('that forks as fast as it can is ended whole', async () => {
    const folder = bench.newCall();
    const forker = 'f() { [ $1 -gt 7 ] && exec sleep 15; f $(($1 + 1)) & f $(($1 + 1)); wait; }; f 0';
    const text = await bench.text(forker, { folder, ceilings: CEILINGS });
    expect(text).toMatch(/ended: it had more than 50 processes \(limits.commandProcesses\); the whole process tree/);
    expect(await survivors(folder)).toEqual([]);
  });

  it.skipIf(isMissing)('that is within its ceilings ends by itself, and at its time limit on time', async () => {
    expect(await bench.text('sleep 0.3; echo fine', { ceilings: CEILINGS })).toBe('fine\nexit code: 0');
    expect(await bench.text('sleep 30', { ceilings: CEILINGS, timeoutMs: 500 })).toMatch(/timed out after 0.5 s/);
  });

  it.skipIf(isMissing)('has the ceilings it was claimed with, whoever starts it', async () => {
    const folder = bench.newCall();
    const sandbox = await bench.plan();
    if (sandbox.kind === 'refused') throw new Error(sandbox.reason);
    const command = 'for i in {1..60}; do sleep 15 & done; wait';
    const job = { command, cwd: bench.workspace, timeoutMs: 20_000, caps: DEFAULT_CAPS, sandbox, ceilings: CEILINGS };
    await claimJob(folder, job);
    const { exit } = await bench.start('ignored', { folder, ceilings: { memoryBytes: GIB, processes: 1000 } });
    expect(exit.overCeiling).toMatchObject({ of: 'processes', limit: 50 });
  });
});

it.skipIf(BWRAP === null)('files in memory count, and none of the host do', async () => {
  const bench = await openJobBench();
  const ceilings = { ...CEILINGS, memoryBytes: 100 * MIB };
  const fill = 'head -c 150M /dev/zero > /dev/shm/x; sleep 15';
  expect(await bench.text(fill, { ceilings })).toMatch(/^\(no output\)\nended: it used more than 100 MiB of memory/);
  expect(await bench.text('head -c 5M /dev/zero > /dev/shm/x; sleep 0.5', { ceilings })).toMatch(/exit code: 0$/);
});

it('before the sandbox stands nobody is taken for its process and no file for its own', () => {
  const view = sandboxView(process.pid, ['bwrap', '--dev', '/dev', '--tmpfs', '/run', '--tmpfs', '/']);
  expect(measureUsage(view, 0)).toBeUndefined();
  expect(view.memoryFileBytes()).toBe(0);
});

it('what the kernel killed for want of memory is told', async () => {
  const bench = await openJobBench('full-access');
  const outcome = await bench.start('kill -9 $$');
  const exit = { ...outcome.exit, outOfMemory: true } as const;
  const { text } = await jobResult({ ...outcome, exit }, { spill: async () => '/spilled' });
  expect(text).toMatch(/ran out of memory meanwhile.*\nkilled by signal SIGKILL$/s);
});

describe('the time to the next look', () => {
  const ceilings = { memoryBytes: 8 * GIB, processes: 2048 };
  const look = (memoryBytes: number, processes: number, costMs = 0.5) =>
    nextPauseMs({ usage: { memoryBytes, processes }, ceilings, costMs }, 2);

  it('is what a command needs to reach a ceiling, within bounds', () => {
    expect(look(10 * MIB, 3)).toBeCloseTo(409);
    expect(look(7.5 * GIB, 3)).toBeCloseTo(125);
    expect(look(8 * GIB, 3)).toBe(50);
    expect(nextPauseMs({ usage: undefined, ceilings: { ...ceilings, processes: 1e6 }, costMs: 0 }, 2)).toBe(1_000);
  });

  it('is longer where a look is dear, less so near a ceiling', () => {
    expect(look(10 * MIB, 3, 20)).toBe(1_000);
    expect(look(8 * GIB, 3, 20)).toBe(200);
  });
});

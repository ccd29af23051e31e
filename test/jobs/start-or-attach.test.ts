import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { cancelJob, endJobsOf, listOpenJobs } from '../../src/jobs/cancel-job.ts';
import { claimJob, jobFiles } from '../../src/jobs/job-folder.ts';
import { fileURLToPath } from 'node:url';
import { DEFAULT_CAPS } from '../../src/jobs/start-or-attach.ts';
import { isRunning, processesIn } from '../helpers/processes.ts';
import { cover, smallDiskProblem, unmount } from '../helpers/small-disk.ts';
import { BWRAP, eventually, openJobBench, supervisorPid, survivors } from './job-bench.ts';
import { buildPrograms } from './supervisor-program.ts';

const mountProblem = smallDiskProblem();

const MODES = [
  ['bubblewrap', 'workspace-write'],
  ['no sandbox', 'full-access'],
] as const;

describe.each(MODES)('a job in %s', async (name, mode) => {
  const isMissing = name === 'bubblewrap' && BWRAP === null;
  const bench = await openJobBench(mode);

  it.skipIf(isMissing).each([
    ['true', '(no output)\nexit code: 0'],
    ['false', '(no output)\nexit code: 1'],
    ['exit 300', '(no output)\nexit code: 44'],
    ['echo out; echo err >&2; echo last', 'out\nerr\nlast\nexit code: 0'],
    ['echo a > /dev/stdout; echo b > /dev/stderr', 'a\nb\nexit code: 0'],
    ['cat; echo end of input', 'end of input\nexit code: 0'],
  ])('%s ends with its output and its exit code', async (command, text) => {
    expect(await bench.text(command)).toBe(text);
  });

  it.skipIf(isMissing).each([
    ['kill -9 $$', /^\(no output\)\n(exit code: 137 \()?killed by signal SIGKILL\)?$/],
    ['nosuchprogram', /nosuchprogram: command not found\nexit code: 127$/],
    ['if then', /syntax error.*\nexit code: 2$/s],
    ['git log --nosuchoption; exit 129', /exit code: 129$/],
  ])('%s is told as what it is', async (command, text) => {
    expect(await bench.text(command)).toMatch(text);
  });

  it.skipIf(isMissing)('returns when the shell ends, and what it left in the background ends with it', async () => {
    const folder = bench.newCall();
    expect(await bench.text('sleep 61 & setsid sleep 61 & echo hi', { folder })).toBe('hi\nexit code: 0');
    expect(await survivors(folder)).toEqual([]);
  });

  it.skipIf(isMissing)('ends what has left session, parent and environment behind, once it was seen', async () => {
    const mark = `63.${process.pid}${name.length}`;
    const leave = `setsid env -i sleep ${mark} & sleep 1.5; echo gone`;
    const ceilings = { memoryBytes: 2 ** 30, processes: 100 };
    expect(await bench.text(leave, { ceilings })).toBe('gone\nexit code: 0');
    expect(processesIn('', `sleep ${mark}`)).toEqual([]);
  });

  it.skipIf(isMissing)('past its time limit the whole tree is killed, whatever it does about it', async () => {
    const folder = bench.newCall();
    const tree =
      'trap "" TERM; (setsid sleep 62 &) ; nohup sleep 62 & bash -c "trap \'\' TERM; sleep 62" & echo up; sleep 62; sleep 62';
    const text = await bench.text(tree, { folder, timeoutMs: 2_500 });
    expect(text).toContain('up\n');
    expect(text).toMatch(/timed out after 2.5 s; the whole process tree was killed$/);
    expect(await survivors(folder)).toEqual([]);
  });

  it.skipIf(isMissing)('a command that cleans up on TERM gets the time for it', async () => {
    const text = await bench.text('trap "echo bye; exit 0" TERM; sleep 63 & wait', { timeoutMs: 2_000 });
    expect(text).toMatch(/bye\ntimed out/);
  });

  it.skipIf(isMissing)('a flood of output is cut on disk and ends the job', async () => {
    const folder = bench.newCall();
    const caps = { headBytes: 1 << 20, tailBytes: 1 << 20, flowBytes: 20 << 20 };
    const { exit } = await bench.start('yes', { folder, caps });
    expect(exit.outputCapped).toBe(true);
    const files = readdirSync(jobFiles(folder).folder).map(
      (file) => statSync(join(jobFiles(folder).folder, file)).size,
    );
    expect(files.reduce((sum, size) => sum + size)).toBeLessThan(4 << 20);
    expect(await survivors(folder)).toEqual([]);
  });

  it.skipIf(isMissing)('a slow flood is ended by the time limit', async () => {
    const caps = { ...DEFAULT_CAPS, flowBytes: Number.MAX_SAFE_INTEGER };
    const { exit } = await bench.start('yes | head -c 100G', { timeoutMs: 1_000, caps });
    expect(exit.timedOut).toBe(true);
  });

  it.skipIf(isMissing)('a clock that is set back gives it no more time', async () => {
    const program = fileURLToPath(new URL('./clock-back-supervisor.ts', import.meta.url));
    const { supervisor } = await buildPrograms({ supervisor: program });
    const { exit } = await bench.start('sleep 60', { timeoutMs: 1_500, supervisorPath: supervisor });
    expect(exit.timedOut).toBe(true);
  });

  it.skipIf(isMissing)('who waits for it looks on when the clock is set back', async () => {
    let looks = 0;
    const check = () => {
      looks += 1;
      vi.setSystemTime(Date.now() - 3600_000);
      return Promise.resolve();
    };
    try {
      await bench.start('sleep 7', { check });
    } finally {
      vi.useRealTimers();
    }
    expect(looks).toBeGreaterThan(1);
  });

  it.skipIf(isMissing)(
    'past its time limit when the machine wakes from its sleep, it is told as timed out',
    async () => {
      const folder = bench.newCall();
      const waiting = bench.text('echo up; sleep 60', { folder, timeoutMs: 2_000 });
      const pid = await supervisorPid(folder);
      await eventually(async () => (await survivors(folder)).length > 0);
      process.kill(pid, 'SIGSTOP');
      try {
        vi.setSystemTime(Date.now() + 8 * 3600_000);
        await sleep(2_500);
        process.kill(pid, 'SIGCONT');
        expect(await waiting).toMatch(/timed out after 2 s; the whole process tree was killed$/);
      } finally {
        vi.useRealTimers();
      }
    },
  );

  it.skipIf(isMissing)('a store that is full ends the waiting, not the command', async () => {
    const folder = bench.newCall();
    const check = () => Promise.reject(new Error('disk full'));
    await expect(bench.start('sleep 4; echo done', { folder, check })).rejects.toThrow('disk full');
    expect(await bench.text('ignored', { folder })).toBe('done\nexit code: 0');
  });

  it.skipIf(isMissing)('attempts at the same time and afterwards run it once and get the same answer', async () => {
    const folder = bench.newCall();
    const command = 'echo run >> counter; sleep 0.3; cat counter';
    const both = await Promise.all([bench.text(command, { folder }), bench.text(command, { folder })]);
    const later = await bench.text(command, { folder });
    expect([...both, later]).toEqual(Array(3).fill('run\nexit code: 0'));
    expect(await readFile(join(bench.workspace, 'counter'), 'utf8')).toBe('run\n');
    await bench.text('rm counter');
  });

  it.skipIf(isMissing)('an aborted wait leaves it running; the next attempt gets its end', async () => {
    const folder = bench.newCall();
    const controller = new AbortController();
    const waiting = bench.start('sleep 0.8; echo done', { folder, signal: controller.signal });
    await supervisorPid(folder);
    controller.abort(new Error('worker shuts down'));
    await expect(waiting).rejects.toThrow('worker shuts down');
    expect(await bench.text('ignored', { folder })).toBe('done\nexit code: 0');
  });

  it.skipIf(isMissing)('a killed supervisor takes the command along; the outcome is told as unknown', async () => {
    const folder = bench.newCall();
    const waiting = bench.text('echo so far; (setsid sleep 64 &); sleep 64', { folder });
    const pid = await supervisorPid(folder);
    const output = join(jobFiles(folder).folder, 'output');
    await eventually(async () => existsSync(output) && (await readFile(output, 'utf8')).includes('so far'));
    process.kill(pid, 'SIGKILL');
    const text = await waiting;
    expect(text).toMatch(/^so far\ninterrupted; effects unknown; the output above/);
    expect(await survivors(folder)).toEqual([]);
    expect(await bench.text('again', { folder })).toBe(text);
  });

  it.skipIf(isMissing)('cancelling ends it and everything it started', async () => {
    const folder = bench.newCall();
    const waiting = bench.text('echo on; (setsid sleep 65 &); sleep 65', { folder });
    await supervisorPid(folder);
    await eventually(async () => (await survivors(folder)).length > 1);
    await cancelJob(folder);
    expect(await survivors(folder)).toEqual([]);
    expect(await waiting).toMatch(/cancelled; the whole process tree was killed/);
  });

  it.skipIf(isMissing || mountProblem !== undefined)(
    'cancelling ends it also while the disk is read-only; what is to be recorded follows later',
    async () => {
      const folder = bench.newCall();
      const waiting = bench.text('echo on; (setsid sleep 65 &); sleep 65', { folder });
      const ended = waiting.catch(() => 'met the disk too');
      const pid = await supervisorPid(folder);
      await eventually(async () => (await survivors(folder)).length > 1);
      cover(bench.home);
      try {
        await expect(cancelJob(folder)).rejects.toThrow(/EROFS/);
        expect(await survivors(folder)).toEqual([]);
        expect(isRunning(pid)).toBe(false);
      } finally {
        unmount(bench.home);
      }
      await ended;
      await cancelJob(folder);
      expect(await bench.text('again', { folder })).toMatch(/^on\n(interrupted; effects unknown|cancelled;)/);
    },
  );

  it.skipIf(isMissing)(
    'a claim whose claimant died before the start is started by the next attempt, once',
    async () => {
      const folder = bench.newCall();
      const sandbox = await bench.plan();
      if (sandbox.kind === 'refused') throw new Error(sandbox.reason);
      const job = { command: 'echo started', cwd: bench.workspace, timeoutMs: 5_000, caps: DEFAULT_CAPS, sandbox };
      expect(await claimJob(folder, job)).toBe(true);
      expect(await claimJob(folder, job)).toBe(false);
      const texts = await Promise.all([1, 2, 3].map(() => bench.text('other', { folder })));
      expect(new Set(texts)).toEqual(new Set(['started\nexit code: 0']));
    },
  );

  it.skipIf(isMissing)('a job called off before its start never runs', async () => {
    const folder = bench.newCall();
    const sandbox = await bench.plan();
    if (sandbox.kind === 'refused') throw new Error(sandbox.reason);
    const job = { command: 'touch ran', cwd: bench.workspace, timeoutMs: 5_000, caps: DEFAULT_CAPS, sandbox };
    await claimJob(folder, job);
    await cancelJob(folder);
    expect(await bench.text('ignored', { folder })).toMatch(/not started: it was called off$/);
    expect(existsSync(join(bench.workspace, 'ran'))).toBe(false);
  });

  it.skipIf(isMissing)('open jobs are listed, and ended together with their agent', async () => {
    const folders = [bench.newCall(), bench.newCall()];
    const waiting = folders.map((folder) => bench.start('sleep 66', { folder }));
    await Promise.all(folders.map(supervisorPid));
    const journal = join(bench.home, 'journal');
    expect((await listOpenJobs(journal)).map(({ folder }) => folder).sort()).toEqual([...folders].sort());
    await endJobsOf(join(journal, 'run', 'agent'));
    expect(await listOpenJobs(journal)).toEqual([]);
    expect((await Promise.all(waiting)).every(({ exit }) => exit.cancelled)).toBe(true);
  });

  it.skipIf(isMissing)('progress shows the last line', async () => {
    const lines: string[] = [];
    await bench.start('echo one; sleep 1.4; echo two', { onProgress: (line) => lines.push(line) });
    expect(lines).toContain('one');
  });

  it.skipIf(isMissing)('a folder that is not there is news, not a crash', async () => {
    const text = await bench.text('true', { cwd: join(bench.workspace, 'missing') });
    expect(text).toMatch(/not started: |exit code: 1/);
    expect(text).toContain('missing');
  });

  it.skipIf(isMissing)('too long a command is told with a way out', async () => {
    expect(await bench.text(`: ${'x'.repeat(200_000)}`)).toMatch(/not started: the command is too long/);
  });

  it.skipIf(isMissing)('a damaged spec stops the attempt', async () => {
    const folder = bench.newCall();
    await bench.text('true', { folder });
    writeFileSync(jobFiles(folder).spec, '{"v":');
    await expect(bench.text('true', { folder })).rejects.toThrow(/spec.json is damaged/);
  });
});

it('a supervisor that does not end its command in time is killed, and the outcome is told as unknown', async () => {
  const bench = await openJobBench('full-access');
  const folder = bench.newCall();
  const waiting = bench.text('echo up; sleep 60', { folder, timeoutMs: 1_000 });
  const pid = await supervisorPid(folder);
  await eventually(async () => (await survivors(folder)).length > 0);
  process.kill(pid, 'SIGSTOP');
  expect(await waiting).toMatch(/interrupted; effects unknown/);
  expect(await survivors(folder)).toEqual([]);
});

it('a refused sandbox runs nothing and says how to mend it', async () => {
  const bench = await openJobBench();
  const sandbox = { kind: 'refused', reason: 'bwrap was not found', fix: 'Install bubblewrap' } as const;
  const folder = bench.newCall();
  expect(await bench.text('touch ran', { folder, sandbox })).toBe(
    '(no output)\nnot started: bwrap was not found. Install bubblewrap',
  );
  expect(existsSync(folder)).toBe(false);
});

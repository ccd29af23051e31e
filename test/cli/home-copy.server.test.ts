import { cp, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverStatus, stopServer } from '../../src/server/index.ts';
import { startSimulator, type Simulator } from '../../src/simulator/index.ts';
import { errand as inProcess } from './fake-io.ts';
import { commandLine, type Ended } from '../helpers/command-line.ts';
import { isRunning } from '../helpers/processes.ts';

let folder: string;
let original: string;
let copy: string;
let simulator: Simulator;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'errand-copy-')));
  [original, copy] = [join(folder, 'original'), join(folder, 'copy')];
  await mkdir(join(folder, 'work'));
  simulator = await startSimulator();
});
afterEach(async () => {
  for (const home of [original, copy]) await stopServer({ home, log: () => undefined }).catch(() => undefined);
  await simulator.close();
  await rm(folder, { recursive: true, force: true });
});

function errand(home: string, ...args: readonly string[]): Promise<Ended> {
  return commandLine(args, environment(home), join(folder, 'work'));
}

/** The same in this process: many command lines that start nothing. */
function look(home: string, ...args: readonly string[]): Promise<Ended> {
  return inProcess(args, { env: environment(home), cwd: join(folder, 'work') });
}

function environment(home: string): NodeJS.ProcessEnv {
  const model = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: simulator.url, ERRAND_MODEL: 'sim-1' };
  return { ...process.env, ...model, ERRAND_HOME: home, ERRAND_TEMPORAL_ADDRESS: undefined };
}

async function pidsOf(home: string): Promise<readonly number[]> {
  const { instances } = await serverStatus({ home });
  return instances.flatMap(({ supervisorPid, temporal, workers }) =>
    [supervisorPid, temporal?.pid, ...workers.map(({ pid }) => pid)].flatMap((pid) => pid ?? []),
  );
}

describe('a copy of a home whose server runs', { timeout: 180_000 }, () => {
  beforeEach(async () => {
    await errand(original, 'run', '--id', 'first', '[[scenario:hello]] hi');
    await cp(original, copy, { recursive: true, filter: (source) => !source.endsWith('.sock') });
  });

  it('does not stop it, starts nothing beside it, and says whose it is', async () => {
    const pids = await pidsOf(original);
    expect(pids).toHaveLength(4);
    const down = await errand(copy, 'down');
    expect(down.err).toContain(`${copy} is a copy of ${original}, and what runs belongs to the original: nothing was`);
    expect(down.code).toBe(2);
    for (const args of [['up'], ['run', 'x'], ['demo'], ['worker'], ['steer', 'first', 'x'], ['doctor', '--clean']]) {
      const { code, err } = await look(copy, ...args);
      expect(err).toContain(`errand: ${copy} is a copy of ${original}, whose server still runs`);
      expect(err).toContain(`Stop the original first (ERRAND_HOME=${original} errand down)`);
      expect(code).toBe(2);
    }
    expect(pids.filter(isRunning)).toEqual(pids);
    expect((await errand(original, 'run', '[[scenario:hello]] hi')).code).toBe(0);
  });

  it('can be looked at', async () => {
    const status = await errand(copy, 'status');
    expect(status.out).toContain(`${copy} is a copy of ${original}`);
    expect(status.out).not.toMatch(/pid \d|Nothing runs/);
    for (const args of [['ps'], ['show', 'first'], ['logs', 'first'], ['watch', 'first']]) {
      const { code, out } = await look(copy, ...args);
      expect(out).toContain(args[0] === 'logs' ? 'hi' : 'first');
      expect(code).toBe(0);
    }
    expect((await look(copy, 'ps')).err).toContain(`is a copy of ${original}`);
    expect((await look(copy, 'doctor')).out).toMatch(/PROBLEM Server: .* is a copy of /);
  });

  it('is known for one also when the server was started anew since, or only workers are left of it', async () => {
    const worker = (await serverStatus({ home: original })).instances[0]?.workers[0]?.pid ?? 0;
    await errand(original, 'down');
    expect(isRunning(worker)).toBe(false);
    await errand(original, 'up');
    expect((await errand(copy, 'up')).err).toContain(`is a copy of ${original}`);
    await rm(copy, { recursive: true });
    await cp(original, copy, { recursive: true, filter: (source) => !source.endsWith('.sock') });
    const { supervisorPid = 0 } = (await serverStatus({ home: original })).instances[0] ?? {};
    process.kill(supervisorPid, 'SIGKILL');
    const pids = (await pidsOf(original)).filter((pid) => pid !== supervisorPid);
    expect(pids.length).toBeGreaterThan(1);
    expect((await errand(copy, 'down')).code).toBe(2);
    expect(pids.filter(isRunning)).toEqual(pids);
  });

  it('is a home like any other once the original is stopped', async () => {
    await errand(original, 'down');
    expect((await errand(copy, 'status')).out).not.toContain('is a copy');
    expect((await errand(copy, 'run', '[[scenario:hello]] hi')).code).toBe(0);
    expect((await errand(copy, 'ps')).err).toBe('');
    expect(await pidsOf(copy)).toHaveLength(4);
    expect((await errand(copy, 'down')).code).toBe(0);
    expect(await pidsOf(copy)).toEqual([]);
  });
});

it(
  'a home that was moved while its server runs says so at once, is stopped where it is, and then goes on',
  { timeout: 180_000 },
  async () => {
    await errand(original, 'run', '--id', 'first', '[[scenario:hello]] hi');
    const pids = await pidsOf(original);
    await rename(original, copy);
    const words = `This home was moved from ${original} to ${copy} while its server runs. Run errand down, then errand up.`;
    for (const args of [['up'], ['run', 'x']]) {
      expect(await errand(copy, ...args)).toEqual({ code: 2, out: '', err: `errand: ${words}\n` });
    }
    expect((await errand(copy, 'status')).out).toContain(words);
    expect(await errand(copy, 'down')).toMatchObject({ code: 0, out: 'Stopped.\n' });
    expect(pids.filter(isRunning)).toEqual([]);
    expect((await errand(copy, 'up')).code).toBe(0);
    expect((await errand(copy, 'status')).out).not.toContain('moved');
    expect((await errand(copy, 'run', '[[scenario:hello]] hi')).code).toBe(0);
  },
);

it('a home at the path that a running one left is not written to by its supervisor', { timeout: 180_000 }, async () => {
  await errand(original, 'up', '--workers', '1');
  const [, , worker = 0] = await pidsOf(original);
  await rename(original, copy);
  await mkdir(join(original, 'server'), { recursive: true });
  await writeFile(join(original, 'server/state.json'), 'of another home');
  process.kill(worker, 'SIGKILL');
  await expect.poll(async () => (await pidsOf(copy)).length, { timeout: 40_000 }).toBe(0);
  expect((await errand(original, 'status')).out).toMatch(/Nothing runs/);
  await rm(original, { recursive: true });
});

it('a home that is reached through a symlink is the same home', { timeout: 180_000 }, async () => {
  await errand(original, 'up');
  const pids = await pidsOf(original);
  await symlink(original, copy);
  expect((await errand(copy, 'status')).out).toMatch(/embedded Temporal server: up/);
  expect((await errand(copy, 'run', '[[scenario:hello]] hi')).code).toBe(0);
  expect(await pidsOf(copy)).toEqual(pids);
  expect((await errand(copy, 'down')).code).toBe(0);
  expect(pids.filter(isRunning)).toEqual([]);
});

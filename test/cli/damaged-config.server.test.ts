import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serverStatus, stopServer } from '../../src/server/index.ts';
import { startSimulator, type Simulator } from '../../src/simulator/index.ts';
import { commandLine, type Ended } from '../helpers/command-line.ts';
import { waitFor } from '../helpers/wait.ts';
import { isRunning } from '../helpers/processes.ts';

let folder: string;
let home: string;
let simulator: Simulator;
let env: NodeJS.ProcessEnv;

const WARNING = /^errand: \S+config\.yaml:\d: .*\nerrand: Going on with defaults instead\..*\n/;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'errand-damaged-')));
  home = join(folder, 'home');
  await mkdir(join(folder, 'work'));
  await mkdir(home);
  simulator = await startSimulator();
  const model = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: simulator.url, ERRAND_MODEL: 'sim-1' };
  env = { ...process.env, ...model, ERRAND_HOME: home, ERRAND_TEMPORAL_ADDRESS: undefined };
});
afterAll(async () => {
  await stopServer({ home, log: () => undefined });
  await simulator.close();
  await rm(folder, { recursive: true, force: true });
});

function errand(...args: readonly string[]): Promise<Ended> {
  return commandLine(args, env, join(folder, 'work'));
}

const damage = () => writeFile(join(home, 'config.yaml'), 'model: [unclosed\n');
const mend = () => rm(join(home, 'config.yaml'));

async function workers() {
  const { instances } = await serverStatus({ home });
  return instances[0]?.workers ?? [];
}

describe('a damaged config.yaml', { timeout: 180_000 }, () => {
  it('promise 5: does not take the stop button away, also when the workers died of it; who starts work is refused', async () => {
    await mend().catch(() => undefined);
    expect((await errand('run', '--detach', '--id', 'one', '[[scenario:slow ms=120000]] wait')).code).toBe(0);
    await damage();
    for (const args of [['run', 'x'], ['up']]) {
      const { code, err } = await errand(...args);
      expect(err).toMatch(/^errand: \S+config\.yaml:\d: /);
      expect(code).toBe(2);
    }
    for (const args of [['status'], ['doctor']]) {
      const { code, err } = await errand(...args);
      expect(err).toMatch(WARNING);
      expect(code).toBe(args[0] === 'doctor' ? 1 : 0);
    }
    for (const { pid = 0 } of await workers()) process.kill(pid, 'SIGKILL');
    await waitFor('the workers to be started in vain', async () => (await workers()).every((one) => one.restarts >= 2));
    const cancelled = await errand('cancel', 'one');
    expect(cancelled).toMatchObject({ code: 0, out: 'one is being cancelled; errand watch tells how it ends\n' });
    expect(cancelled.err).toMatch(WARNING);
    await mend();
    expect((await errand('watch', 'one')).code).toBe(4);
  });

  it('makes a run wait whose workers all died, and it goes on when the file is mended', async () => {
    expect((await errand('run', '--detach', '--id', 'two', '[[scenario:slow ms=3000]] wait')).code).toBe(0);
    await damage();
    for (const { pid = 0 } of await workers()) process.kill(pid, 'SIGKILL');
    await waitFor('the workers to be started in vain', async () => (await workers()).every((one) => one.restarts >= 2));
    const watching = errand('watch', 'two');
    expect((await errand('status')).err).toMatch(WARNING);
    await mend();
    const { code, err } = await watching;
    expect(`${code} ${err}`).toMatch(/^0 /);
  });

  it('lets down stop everything', async () => {
    await damage();
    const pids = (await workers()).flatMap(({ pid }) => pid ?? []);
    const { code, out, err } = await errand('down');
    expect(err).toMatch(WARNING);
    expect(out).toMatch(/^Stopped\./);
    expect(code).toBe(0);
    expect(pids.filter(isRunning)).toEqual([]);
    expect(await errand('cancel', 'no-run-of-this-home')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/Nothing runs, and nothing can be started until \S+config\.yaml is mended/) as string,
    });
  });
});

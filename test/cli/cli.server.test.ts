import { execFile, spawn } from 'node:child_process';
import { mkdtemp, mkdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSimulator, type Simulator } from '../../src/simulator/index.ts';
import { CLI, commandLine, type Ended } from '../helpers/command-line.ts';
import { waitFor } from '../helpers/wait.ts';

let folder: string;
let workspace: string;
let simulator: Simulator;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'errand-cli-')));
  workspace = join(folder, 'work');
  await mkdir(workspace);
  await writeFile(join(workspace, 'a.txt'), 'one\n');
  simulator = await startSimulator();
  const model = { ANTHROPIC_API_KEY: 'sk-marker', ANTHROPIC_BASE_URL: simulator.url, ERRAND_MODEL: 'sim-1' };
  env = { ...process.env, ...model, ERRAND_HOME: join(folder, 'home'), ERRAND_TEMPORAL_ADDRESS: undefined };
});
afterAll(async () => {
  await errand(['down']);
  await simulator.close();
  await rm(folder, { recursive: true, force: true });
});

function errand(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return commandLine(args, { ...env, ...more }, workspace);
}

function lastLine(text: string): Record<string, unknown> {
  return JSON.parse(text.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
}

describe('the command line with its own embedded server', () => {
  it('runs a job from nothing: JSON alone on standard output, the run first, the result last', async () => {
    const { code, out } = await errand(['run', '--json', '--id', 'first', '[[scenario:hello]] hi']);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines[0]).toMatchObject({ type: 'run', run: 'first' });
    expect(lines.at(-1)).toMatchObject({ type: 'result', run: 'first', status: 'completed', costUsd: 0 });
    expect(code).toBe(0);
  });

  it('leaves the workers their model when `up` comes from a shell without one', async () => {
    const keyless = { ANTHROPIC_API_KEY: undefined, ANTHROPIC_BASE_URL: undefined, ERRAND_MODEL: undefined };
    const { code, err } = await errand(['up'], keyless);
    expect(err).not.toMatch(/workers restarted/);
    expect(code).toBe(0);
  });

  it('refuses an id that is taken, with exit code 5', async () => {
    const { code, err } = await errand(['run', '--id', 'first', '[[scenario:hello]] hi']);
    expect(err).toMatch(/There is a run first already/);
    expect(code).toBe(5);
  });

  it('ends quietly when nobody reads on, and the run goes on', async () => {
    const child = spawn(
      'sh',
      ['-c', `"$0" "$1" run --id piped "[[scenario:hello]] hi" | head -1`, process.execPath, CLI],
      { env, cwd: workspace },
    );
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
    await new Promise((done) => child.once('close', done));
    expect(err).not.toMatch(/EPIPE|at /);
    const { out } = await errand(['watch', 'piped', '--json']);
    expect(lastLine(out)).toMatchObject({ status: 'completed' });
  });

  it('detaches by SIGINT without a terminal with exit code 130; cancel from elsewhere ends the run with 4', async () => {
    const child = spawn(process.execPath, [CLI, 'run', '--id', 'slow', '[[scenario:slow ms=60000]] wait'], {
      env,
      cwd: workspace,
    });
    let err = '';
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
    child.stdout.once('data', () => child.kill('SIGINT'));
    const code = await new Promise((done) => child.once('close', done));
    expect(err).toMatch(/Detached; the run goes on\. errand watch slow · errand cancel slow/);
    expect(code).toBe(130);
    expect((await errand(['cancel', 'slow'])).code).toBe(0);
    const watched = await errand(['watch', 'slow', '--json']);
    expect(lastLine(watched.out)).toMatchObject({ type: 'result', status: 'cancelled' });
    expect(watched.code).toBe(4);
    expect((await errand(['cancel', 'slow'])).out).toMatch(/had ended: cancelled/);
  });

  it('says of a run that was stopped with everything else what goes on with it, and starts nothing to say it', async () => {
    expect((await errand(['run', '--detach', '--id', 'left', '[[scenario:slow ms=60000]] wait'])).code).toBe(0);
    await waitFor('the run to have its files', async () => (await errand(['ps'])).out.includes('left'), 60_000);
    await errand(['down']);
    const words = /waiting: nothing runs; errand up goes on with it/;
    expect((await errand(['ps'])).out).toMatch(
      /\nleft +waiting .*\n {2}waiting: nothing runs; errand up goes on with it/,
    );
    expect((await errand(['show', 'left'])).out).toMatch(words);
    expect((await errand(['status'])).out).toMatch(/^Nothing runs/);
  }, 120_000);

  it('keeps the key out of every file of the home', async () => {
    const found = await new Promise<string>((done) => {
      execFile('grep', ['-rl', 'sk-marker', join(folder, 'home')], (_, out) => done(out));
    });
    expect(found).toBe('');
  });
});

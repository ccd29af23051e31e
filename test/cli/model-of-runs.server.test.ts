import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSimulator, toScriptPrompt, type Simulator } from '../../src/simulator/index.ts';
import { CLI, commandLine, type Ended } from '../helpers/command-line.ts';
import { processesIn } from '../helpers/processes.ts';
import { waitFor } from '../helpers/wait.ts';

const KEYLESS = { ANTHROPIC_API_KEY: undefined, ANTHROPIC_BASE_URL: undefined, ERRAND_MODEL: undefined };
const UNTIL_TOLD = { calls: [{ name: 'bash', input: { command: 'until [ -e go ]; do sleep 0.1; done' } }] };

let folder: string;
let workspace: string;
let mine: Simulator;
let theirs: Simulator;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'errand-models-')));
  workspace = join(folder, 'work');
  await mkdir(workspace);
  mine = await startSimulator();
  theirs = await startSimulator();
  const model = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: mine.url, ERRAND_MODEL: 'sim-1' };
  const own = { ERRAND_HOME: join(folder, 'home'), ERRAND_TEMPORAL_ADDRESS: undefined };
  env = { ...process.env, ANTHROPIC_AUTH_TOKEN: undefined, ...model, ...own };
});
afterAll(async () => {
  await errand(['down']);
  await Promise.all([mine.close(), theirs.close()]);
  await rm(folder, { recursive: true, force: true });
}, 60_000);

function errand(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return commandLine(args, { ...env, ...more }, workspace);
}

async function start(id: string, lastWords: string, more: NodeJS.ProcessEnv = {}): Promise<void> {
  const prompt = toScriptPrompt([UNTIL_TOLD, { text: lastWords }], id);
  const started = await errand(['run', '--detach', '--id', id, prompt], more);
  expect(started, started.err).toMatchObject({ code: 0 });
  await waitFor('the run to be in its first call', () => processesIn(workspace, 'until [ -e go').length > 0, 60_000);
}

// One story in one home: each step finds what the one before has left.
describe("a demo's run that a restart found under way", () => {
  it('goes on with the simulator, also from a shell without a key', async () => {
    const demo = await errand(['demo'], KEYLESS);
    expect(demo, demo.err).toMatchObject({ code: 0 });
    const state = await readFile(join(folder, 'home/server/model-server.json'), 'utf8');
    const url = `http://127.0.0.1:${(JSON.parse(state) as { port: number }).port}`;
    await start('demos', 'demo over', { ANTHROPIC_API_KEY: 'errand-demo', ANTHROPIC_BASE_URL: url });
    expect((await errand(['down', '--keep-jobs'])).code).toBe(0);
    await writeFile(join(workspace, 'go'), '');
    const { out } = await errand(['watch', 'demos'], KEYLESS);
    expect(out).toMatch(/demo over[^]*completed/);
    await rm(join(workspace, 'go'));
  }, 180_000);
});

describe('a run under way, in a home that has seen a demo', () => {
  beforeAll(() => start('real', 'the real thing'), 120_000);

  it.each([
    ['demo', ['demo'], KEYLESS, "the demo's simulator"],
    ['demo of a shell with a key', ['demo'], {}, "the demo's simulator"],
    ['run for another server', ['run', '[[scenario:hello]] hi'], 'theirs', 'theirs'],
    ['up for another server', ['up'], 'theirs', 'theirs'],
  ] as const)('promise 3: keeps its workers from a %s', async (_, args, more, wanted) => {
    const settings = more === 'theirs' ? { ANTHROPIC_BASE_URL: theirs.url } : more;
    const { code, err } = await errand(args, settings);
    expect(err).not.toMatch(/workers restarted/);
    const name = wanted === 'theirs' ? theirs.url : wanted;
    expect(err).toContain(`The workers use ${mine.url} and this command would move them to ${name}`);
    expect(err).toContain(`runs of theirs are not finished: real (${mine.url}).`);
    expect(code).toBe(2);
    expect(theirs.ledger()).toEqual([]);
  });

  it('gets workers with another key, or another spelling of the same address', async () => {
    const { code, err } = await errand(['up'], { ANTHROPIC_API_KEY: 'k2', ANTHROPIC_BASE_URL: `${mine.url}/` });
    expect(err).toMatch(/workers restarted: changed environment/);
    expect(code).toBe(0);
  }, 60_000);

  it('promise 3: waits after a restart from a shell without a key, and goes on after `up` from the right one', async () => {
    expect((await errand(['down', '--keep-jobs'])).code).toBe(0);
    await writeFile(join(workspace, 'go'), '');
    const shell = { env: { ...env, ...KEYLESS }, cwd: workspace };
    const child = spawn(process.execPath, [CLI, 'watch', 'real'], shell);
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
    await waitFor('the run to say for what it waits', () => /waiting: |failed|completed/.test(out), 60_000);
    expect(out).toContain(`waiting: this run's model server is ${mine.url}, the workers use none since`);
    const ended = new Promise((done) => child.once('close', done));
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect((await errand(['up'])).code).toBe(0);
    const watched = await errand(['watch', 'real']);
    expect(watched.out).toMatch(/the real thing[^]*completed/);
    expect(mine.ledger()).toHaveLength(2);
  }, 180_000);

  it('leaves its workers to another server once it has ended', async () => {
    const { code, out } = await errand(['run', '[[scenario:hello]] hi'], { ANTHROPIC_BASE_URL: theirs.url });
    expect(out).toMatch(/completed/);
    expect(code).toBe(0);
    expect(theirs.ledger()).toHaveLength(1);
  }, 60_000);
});

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { describeScenarios, startSimulator, type Simulator } from '../../src/simulator/index.ts';
import { main } from '../../src/cli/main.ts';
import { writeModelServer } from '../../src/cli/model-server-process.ts';
import { CANCELLED_JOB } from '../../src/jobs/job-result.ts';
import { loadMeta } from '../../src/store/meta.ts';
import { createTestIo, errand } from './fake-io.ts';
import { mountSmallDisk, remount, smallDiskProblem, unmount } from '../helpers/small-disk.ts';
import { RecordedRun } from './recorded-run.ts';

const noMount = smallDiskProblem();

let folder: string;
let home: string;
let workspace: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'errand-cli-')));
  [home, workspace] = [join(folder, 'home'), join(folder, 'work')];
  mkdirSync(home);
  mkdirSync(workspace);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function cli(argv: readonly string[], env: Record<string, string> = {}) {
  return errand(argv, { cwd: workspace, env: { HOME: folder, PATH: process.env['PATH'], ERRAND_HOME: home, ...env } });
}

const KEY = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9', ERRAND_MODEL: 'm' };

describe('wrong use', () => {
  it.each([
    [['frob'], /unknown command 'frob'/],
    [['run'], /missing required argument 'prompt'/],
    [['run', ''], /The prompt is empty/],
    [['run', '  \n '], /The prompt is empty/],
    [['run', 'x', '--frob'], /unknown option '--frob'/],
    [['run', 'x', 'y'], /too many arguments/],
    [['run', 'x', '--hops', '-1'], /'-1' is invalid.*0 to 5/],
    [['run', 'x', '--hops', '6'], /'6' is invalid.*0 to 5/],
    [['run', 'x', '--max-turns', '1.5'], /'1\.5' is invalid.*whole number/],
    [['run', 'x', '--timeout', '5x'], /'5x' is invalid.*90s, 30m, 2h or 3d/],
    [['run', 'x', '--timeout', '0s'], /'0s' is invalid/],
    [['run', 'x', '--sandbox', 'none'], /'none' is invalid.*read-only, workspace-write, full-access/],
    [['run', 'x', '--sandbox', 'full-access'], /exceeds this host's ceiling.*ceiling: full-access/],
    [['run', 'x', '--id', '../x'], /'\.\.\/x' is invalid/],
    [['run', 'x', '--workspace', '/no/such/folder'], /\/no\/such\/folder does not exist/],
    [['run', 'x', '--workspace', '/etc/hosts'], /\/etc\/hosts is not a folder/],
    [['steer', 'x', ' '], /is empty/],
    [['show'], /missing required argument 'run'/],
    [['logs', 'nope'], /No run "nope"\. There are no runs yet/],
    [['watch', '--limit'], /unknown option/],
  ])('%j ends with exit code 2 and says why', async (argv, message) => {
    const { code, out, err } = await cli(argv, KEY);
    expect(err).toMatch(message);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).not.toMatch(/^\s+at /m);
  });

  it('refuses a prompt over 64 KiB and says what to do with it', async () => {
    const { code, err } = await cli(['run', 'ä'.repeat(33_000)], KEY);
    expect(err).toMatch(/66000 bytes, at most 65536 .* Put it in a file of the workspace and name the file/);
    expect(code).toBe(2);
  });

  it("refuses errand's own tree, ERRAND_HOME, and a folder that holds it", async () => {
    const own = await cli(['run', 'x', '--workspace', join(import.meta.dirname, '..')], KEY);
    expect(own).toMatchObject({ code: 2, err: expect.stringMatching(/errand's own tree/) as string });
    for (const place of [home, folder]) {
      const { code, err } = await cli(['run', 'x', '--workspace', place], KEY);
      expect(err).toMatch(/one in the other/);
      expect(code).toBe(2);
    }
  });

  it('refuses a workspace outside the roots of the ceiling', async () => {
    writeFileSync(join(home, 'config.yaml'), 'ceiling: {roots: [/srv]}\n');
    const { code, err } = await cli(['run', 'x'], KEY);
    expect(err).toMatch(/outside ceiling\.roots/);
    expect(code).toBe(2);
  });

  it('names the variable to set when there is no model to ask', async () => {
    const { code, err } = await cli(['run', 'x']);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(err).toMatch(/set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL/);
    expect(code).toBe(2);
  });

  it.each([[['run', 'x']], [['up']], [['steer', 'x', 'y']], [['worker']], [['demo']]])(
    'where a bad config.yaml is wrong is shown line by line by %j, which is refused',
    async (argv) => {
      writeFileSync(join(home, 'config.yaml'), 'modle: x\ncaps:\n  total: many\n');
      const { code, err } = await cli(argv, KEY);
      const lines = err.trim().split('\n');
      expect(lines).toHaveLength(2);
      for (const line of lines) expect(line).toMatch(/^errand: \S+config\.yaml:\d: /);
      expect(err).toMatch(/config\.yaml:1: unknown setting "modle"/);
      expect(err).toMatch(/config\.yaml:3: caps\.total is "many"/);
      expect(code).toBe(2);
    },
  );

  it.each([[['ps']], [['status']], [['down']], [['show', 'job']], [['logs', 'job']], [['watch', 'job']], [['doctor']]])(
    'a bad config.yaml is warned of once by %j, which goes on',
    async (argv) => {
      new RecordedRun(home, 'job').start();
      new RecordedRun(home, 'job').end('completed', 1);
      writeFileSync(join(home, 'config.yaml'), 'modle: x\n');
      const { code, out, err } = await cli(argv);
      expect(err.match(/config\.yaml:1: unknown setting "modle"/g)).toHaveLength(1);
      expect(err).toMatch(/^errand: Going on with defaults instead/m);
      expect(out).not.toBe('');
      expect(code).toBe(argv[0] === 'doctor' ? 1 : 0);
    },
  );

  it('no default stands in for a Temporal server whose settings cannot be read', async () => {
    new RecordedRun(home, 'job').start();
    const profile = { TEMPORAL_CONFIG_FILE: join(folder, 'temporal.toml'), TEMPORAL_PROFILE: 'mine' };
    writeFileSync(profile.TEMPORAL_CONFIG_FILE, '[profile.mine\naddress = "server:7233"\n');
    const cancelled = await cli(['cancel', 'job'], profile);
    expect(cancelled.err).toMatch(/The Temporal settings .* cannot be used/);
    expect(cancelled.code).toBe(2);
    expect(await cli(['down'], profile)).toMatchObject({ code: 0, out: expect.stringMatching(/^Stopped\./) as string });
  });
});

describe('trouble of the machine', () => {
  it.each([
    ['ENOSPC', /^errand: The disk is full \(ENOSPC: it says\)\. /],
    ['EROFS', /^errand: The file system is read-only \(EROFS: it says\)\. /],
  ])('%s is said in one line, without a stack', async (code, message) => {
    const io = createTestIo({ env: { HOME: folder, ERRAND_HOME: home }, cwd: workspace });
    const stdout = Object.assign(io.stdout, {
      write: () => {
        throw Object.assign(new Error(`${code}: it says`), { code });
      },
    });
    expect(await main(['ps', '--help'], { ...io, stdout })).toBe(1);
    expect(io.err()).toMatch(message);
    expect(io.err().trim().split('\n')).toHaveLength(1);
  });
});

describe('the model of a run', () => {
  let simulator: Simulator;
  beforeAll(async () => {
    simulator = await startSimulator();
  });
  afterAll(() => simulator.close());

  it.each([
    [{ ERRAND_MODEL: 'no-such-model' }, /does not know the model "no-such-model"\. It offers: sim-1, sim-small/],
    [{}, /No model is chosen: set ERRAND_MODEL.*It offers: sim-1, sim-small/],
  ])('%j is refused with what the server offers', async (env, message) => {
    const { code, err } = await cli(['run', 'x'], {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: simulator.url,
      ...env,
    });
    expect(err).toMatch(message);
    expect(code).toBe(2);
  });

  it('is taken on trust by a server that is away, and the run then fails for want of a Temporal server', async () => {
    const env = { ...KEY, ERRAND_TEMPORAL_ADDRESS: '127.0.0.1:9' };
    const { code, err } = await cli(['run', 'x'], env);
    expect(err).toMatch(/Temporal server at 127\.0\.0\.1:9 cannot be reached/);
    expect(code).toBe(6);
  }, 20_000);
});

describe('a model server that is away', () => {
  it('is named when no model is chosen, and not said to be silent about its models', async () => {
    const { code, err } = await cli(['run', 'x'], {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: 'http://me:hidden@127.0.0.1:9/',
    });
    expect(err).toMatch(/No model is chosen: .* is not known: nobody answers at http:\/\/127\.0\.0\.1:9\.\n$/);
    expect(err).not.toMatch(/hidden|does not say/);
    expect(code).toBe(2);
  });
});

describe('a transcript that cannot be read', () => {
  const READERS = [['logs'], ['show', '--diff'], ['watch']];
  const spoilt = [
    ['a folder', (file: string) => mkdirSync(file), /is a folder, not a regular file/, READERS],
    ['a FIFO', (file: string) => execFileSync('mkfifo', [file]), /is not a regular file/, READERS],
    ['a link', (file: string) => symlinkSync('/etc/hosts', file), /is a symbolic link, which is not followed/, READERS],
    ['empty', (file: string) => writeFileSync(file, ''), /the file is empty/, [['show', '--diff']]],
  ] as const;

  function spoil(make: (file: string) => unknown, agentId?: string): void {
    const run = new RecordedRun(home, 'job-abc123');
    run.start();
    run.start({}, 'aaaaaaaaaaaa');
    rmSync(run.file(agentId));
    make(run.file(agentId));
  }

  it.each(spoilt)('%s: every command that reads it says so in one line', async (_, make, message, commands) => {
    spoil(make);
    for (const [command = '', ...more] of commands) {
      const { code, err } = await cli([command, 'job', ...more]);
      expect(err).toMatch(message);
      expect(err).not.toMatch(/bug|^\s+at /m);
      expect(err.trim().split('\n')).toHaveLength(1);
      expect(code).toBe(1);
    }
    expect((await cli(['ps'])).code).toBe(0);
    expect((await cli(['show', 'job'])).err).not.toMatch(/bug/);
  });

  it("a sub-agent's that is missing is named by logs, and show still has the others", async () => {
    spoil(() => writeFileSync(join(metaFolder(), 'agent-aaaaaaaaaaaa.meta.json'), '{}'), 'aaaaaaaaaaaa');
    const { err, code } = await cli(['logs', 'job', '--agent', 'aaaaaaaaaaaa']);
    expect(err).toMatch(/is no agent of run job-abc123/);
    expect(code).toBe(2);
    expect(await cli(['show', 'job'])).toMatchObject({ code: 0, out: expect.stringMatching(/Do the job \(root\)/) });
  });

  it('of which the list knew more when it was written: ps and show warn and show what they know', async () => {
    const run = new RecordedRun(home, 'job-abc123');
    run.start();
    await cli(['ps']);
    const place = { runId: run.runId, agentId: run.runId, transcript: run.stem };
    await loadMeta(home, place, { repair: true });
    rmSync(run.file());
    symlinkSync('/etc/hosts', run.file());
    expect(await cli(['show', 'job'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Do the job/),
      err: `${run.file()} is a symbolic link, which is not followed\n`,
    });
  });

  function metaFolder(): string {
    const run = new RecordedRun(home, 'job-abc123');
    return join(run.file('aaaaaaaaaaaa'), '..');
  }
});

describe('reading without a server', () => {
  function record(runId = 'job-abc123'): RecordedRun {
    const run = new RecordedRun(home, runId);
    run.start();
    run.reply(1, 'I read\u001B[31m it.', [
      { callId: 't1.0', name: 'read', kind: 'read', summary: 'read a.ts', toolUseId: 'x' },
    ]);
    run.seal(2, [{ callId: 't1.0', text: 'line one\nline two' }]);
    run.start({}, 'aaaaaaaaaaaa');
    run.end('failed', 1, { error: 'it broke' }, 'aaaaaaaaaaaa');
    run.reply(2, 'Done.');
    run.end('completed', 2);
    return run;
  }

  it('ps lists runs, and names a file that is none without hiding the others', async () => {
    const run = record();
    writeFileSync(join(run.file(), '..', 'rollout-2026-11-30T12-00-00-000Z-bad.jsonl'), 'not json\n');
    const { code, out, err } = await cli(['ps']);
    expect(out).toMatch(/job-abc123 +completed/);
    expect(err).toMatch(/-bad\.jsonl: the first line is not JSON/);
    expect(code).toBe(0);
    const json = await cli(['ps', '--json']);
    expect(JSON.parse(json.out)).toMatchObject({ runId: 'job-abc123', status: 'completed', depth: 0 });
  });

  it('ps shows a run that goes on as it is now, not as it began', async () => {
    const run = new RecordedRun(home, 'going-on');
    run.start();
    run.usage(3, 1);
    run.reply(3, 'still at it');
    expect(JSON.parse((await cli(['ps', '--json'])).out)).toMatchObject({
      status: 'running',
      turns: 3,
      usage: { own: { requests: 1 } },
    });
  });

  it('an unfinished run of which nothing works is shown as waiting, with what goes on with it', async () => {
    const run = new RecordedRun(home, 'going-on');
    run.start();
    run.reply(1, 'still at it');
    run.start({}, 'aaaaaaaaaaaa');
    const words = /waiting: nothing runs; errand up goes on with it \(last step .*\d\d:\d\d\)\n/;
    expect((await cli(['ps'])).out).toMatch(/\ngoing-on +waiting .*\n {2}waiting: nothing runs/);
    const { out } = await cli(['show', 'going-on']);
    expect(out).toMatch(/\(root\) · waiting\n/);
    expect(out).toMatch(words);
    expect(out.match(/waiting:/g)).toHaveLength(1);
    for (const argv of [
      ['ps', '--json'],
      ['show', 'going-on', '--json'],
    ]) {
      const json = JSON.parse((await cli(argv)).out) as unknown;
      expect(json).toMatchObject({ status: 'running', waitingFor: expect.stringMatching(/^nothing runs; errand up/) });
    }
    expect(existsSync(join(home, 'server'))).toBe(false);
  });

  it('what has ended waits for nothing', async () => {
    record();
    expect((await cli(['ps'])).out).not.toMatch(/waiting/);
    expect((await cli(['ps', '--json'])).out).not.toMatch(/waitingFor/);
  });

  it('the ended line, the result line and the text agree on the turns of a cancelled run', async () => {
    const run = new RecordedRun(home, 'stopped');
    run.start();
    run.reply(1, 'On it.', [{ callId: 't1.0', name: 'bash', kind: 'bash', summary: 'bash sleep', toolUseId: 'x' }]);
    run.seal(2, [{ callId: 't1.0', text: CANCELLED_JOB, isError: true }]);
    run.end('cancelled', 1);
    const { out } = await cli(['watch', 'stopped', '--json']);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.filter(({ type }) => type === 'ended' || type === 'result').map(({ turns }) => turns)).toEqual([1, 1]);
    expect((await cli(['watch', 'stopped'])).out).toMatch(/^cancelled · 1 turn$/m);
  });

  it('show --diff of a run whose workspace is gone says so', async () => {
    const run = record();
    expect(await cli(['show', run.runId, '--diff'])).toMatchObject({
      code: 0,
      err: 'No diff: the workspace /workspace is not there any more.\n',
    });
  });

  it('show prints the tree; --json nests the children under agents', async () => {
    record();
    const { out, code } = await cli(['show', 'job']);
    expect(out).toMatch(/Do the job \(root\) · completed/);
    expect(out).toMatch(/ {4}find the cause \(explore\) · failed/);
    expect(out).toMatch(/failed: it broke/);
    expect(out).toMatch(/last step: Done\./);
    expect(code).toBe(0);
    const json = JSON.parse((await cli(['show', 'job', '--json'])).out) as unknown;
    expect(json).toMatchObject({
      agentId: 'job-abc123',
      agents: [{ agentId: 'aaaaaaaaaaaa', status: 'failed', agents: [] }],
    });
  });

  it('logs prints turns, calls and results without escape sequences, and counts what it skips', async () => {
    const run = record();
    run.raw('torn {\n');
    const { out, err } = await cli(['logs', 'job']);
    expect(out).toMatch(/turn 1 · model/);
    expect(out).toContain('I read it.');
    expect(out).not.toContain('\u001B[31m');
    expect(out).toMatch(/← line one\n {4}line two/);
    expect(err).toMatch(/1 line \(6 bytes\) skipped: no record/);
  });

  it('logs --json prints the records of the agent that was named', async () => {
    record();
    const { out } = await cli(['logs', 'job', '--agent', 'the cause', '--json']);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { type: string }).type),
    ).toEqual(['session_meta', 'end']);
  });

  it('logs lists the agents when none has the name', async () => {
    record();
    const { code, err } = await cli(['logs', 'job', '--agent', 'zzz']);
    expect(err).toMatch(/"zzz" is no agent .*\n +job-abc123 .*\n +aaaaaaaaaaaa +find the cause/);
    expect(code).toBe(2);
  });

  it('an ambiguous name is an error that lists what it may mean', async () => {
    record('job-one111');
    record('job-two222');
    const { code, err } = await cli(['show', 'job']);
    expect(err).toMatch(/may mean 2 runs: job-two222, job-one111|may mean 2 runs: job-one111, job-two222/);
    expect(code).toBe(2);
  });

  it('cancel of a run that has ended says so and is no error', async () => {
    record();
    expect(await cli(['cancel', 'job'])).toMatchObject({ code: 0, out: 'job-abc123 had ended: completed\n', err: '' });
    expect((await cli(['cancel', 'job', '--agent', 'aaaa'])).out).toBe('job-abc123/aaaaaaaaaaaa had ended: failed\n');
  });

  it.each([
    ['completed', 0],
    ['failed', 1],
    ['lost', 1],
    ['max_turns', 3],
    ['budget', 3],
    ['timeout', 3],
    ['cancelled', 4],
    ['refused', 5],
    ['rejected', 5],
  ])('watch of a run that ended %s has exit code %i and a result line', async (status, exitCode) => {
    const run = new RecordedRun(home, 'ended');
    run.start();
    run.reply(1, 'Last words.');
    run.usage(1, 1);
    run.end(status, 1, { error: 'because' });
    const { code, out, err } = await cli(['watch', 'ended', '--json']);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines[0]).toMatchObject({ type: 'run', run: 'ended' });
    expect(lines.at(-1)).toMatchObject({
      type: 'result',
      run: 'ended',
      status,
      text: 'Last words.',
      usage: { requests: 1 },
      costUsd: 0,
    });
    expect(err).toBe('');
    expect(code).toBe(exitCode);
  });

  it('status names the model simulator that a demo left running', async () => {
    mkdirSync(join(home, 'server'));
    writeModelServer(join(home, 'server/model-server.json'), 4711);
    const { out } = await cli(['status']);
    expect(out).toMatch(
      new RegExp(`^No server and no worker runs.*\\nmodel simulator: http://127.0.0.1:4711 · pid ${process.pid}\\n$`),
    );
    expect(JSON.parse((await cli(['status', '--json'])).out)).toMatchObject({
      running: false,
      modelServer: { url: 'http://127.0.0.1:4711', pid: process.pid },
    });
  });

  it('status and ps say what to do when there is nothing', async () => {
    expect((await cli(['status'])).out).toMatch(/Nothing runs\. errand up/);
    expect((await cli(['ps'])).out).toMatch(/No runs yet/);
  });

  it('down of nothing is no error', async () => {
    expect(await cli(['down'])).toMatchObject({ code: 0, out: 'Stopped.\n' });
  });
});

describe('doctor', () => {
  it('prints each value with its source and no secret', async () => {
    const { out } = await cli(['doctor', '--json'], {
      ...KEY,
      ANTHROPIC_API_KEY: 'sk-marker',
      ERRAND_BWRAP: '/no/such/bwrap',
    });
    const { settings, checks } = JSON.parse(out) as { settings: { name: string }[]; checks: { name: string }[] };
    expect(settings).toContainEqual({ name: 'ANTHROPIC_API_KEY', value: 'set', source: 'ANTHROPIC_API_KEY' });
    expect(settings).toContainEqual({ name: 'ERRAND_HOME', value: home, source: 'ERRAND_HOME' });
    expect(out).not.toContain('marker');
    expect(checks.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['Node', 'git', 'Temporal CLI', 'Sandbox', 'Disk', 'Server']),
    );
  });
});

describe('doctor for people', () => {
  it('says settings in words', async () => {
    writeFileSync(
      join(home, 'config.yaml'),
      'ceiling: {sandbox: read-only, roots: [/srv, /data]}\nmodels: {m: {window: 9}}\n',
    );
    const { out } = await cli(['doctor']);
    expect(out).toMatch(/^ceiling +sandbox read-only, network no, roots \(\/srv, \/data\) +\(config\.yaml\)$/m);
    expect(out).toMatch(
      /^models +sim-1 price \(input 0, output 0\), sim-small price .*, m window 9 +\(config\.yaml\)$/m,
    );
  });

  it.runIf(noMount === undefined)('says of a small read-only disk that it is read-only, not to make room', async () => {
    mountSmallDisk(home);
    try {
      expect((await cli(['doctor'])).out).toMatch(/PROBLEM Disk: 1\d\.\d MiB free.*\n +Make room/);
      expect(remount(home, 'ro')).toBe(true);
      const { code, out } = await cli(['doctor']);
      expect(out).toMatch(/PROBLEM Home: .* cannot be written: its file system is read-only/);
      expect(out).not.toMatch(/Make room/);
      expect(code).toBe(1);
    } finally {
      unmount(home);
    }
  });
});

describe('model-server', () => {
  it('lists its scenarios and their arguments in its help', async () => {
    const { code, out } = await cli(['model-server', '--help']);
    expect(out).toMatch(/\[\[scenario:NAME key=value\]\]/);
    for (const { name, args } of describeScenarios()) {
      expect(out).toMatch(new RegExp(`^ {2}${name} `, 'm'));
      for (const key of Object.keys(args)) expect(out).toContain(`  ${key}=  `);
    }
    expect(code).toBe(0);
  });

  it('refuses a scenario that is not there', async () => {
    const { code, err } = await cli(['model-server', '--scenario', 'no-such']);
    expect(err).toMatch(/no scenario "no-such"\. Choose one of: /);
    expect(code).toBe(2);
  });
});

it.runIf(process.getuid?.() !== 0)('a home that cannot be read is an error with its name', async () => {
  chmodSync(home, 0);
  const { code, err } = await cli(['ps']);
  chmodSync(home, 0o700);
  expect(err).toContain(home);
  expect(code).toBe(2);
});

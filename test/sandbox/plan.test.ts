import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planSandbox } from '../../src/sandbox/plan.ts';
import { BWRAP, openJobBench } from '../jobs/job-bench.ts';

describe.skipIf(BWRAP === null)('a sandboxed command', async () => {
  const bench = await openJobBench();

  it('cannot write outside the workspace, and can inside', async () => {
    // Not in errand's own tree: below /tmp that would be hidden by the command's own /tmp.
    const outside = '/usr/written-by-a-command';
    const text = await bench.text(`echo x > ok; cat ok; echo x > ${outside}; echo x > /etc/errand-x; mkdir /errand-x`);
    expect(text.match(/Read-only file system/g)).toHaveLength(3);
    expect(text).toMatch(/^x\n/);
    expect([existsSync(outside), existsSync('/etc/errand-x')]).toEqual([false, false]);
  });

  it('has no capabilities and cannot make the system writable', async () => {
    const text = await bench.text(
      'grep CapEff /proc/self/status; mount -o remount,rw,bind / && echo OPEN; ' +
        'unshare -Urm mount -o remount,rw,bind / && echo OPEN; umount /run && echo OPEN; true',
    );
    expect(text).toMatch(/^CapEff:\s+0{16}\n/);
    expect(text).not.toContain('OPEN');
  });

  it('sees none of the worker’s variables but the allowed ones', async () => {
    const secrets = {
      ANTHROPIC_API_KEY: 'sk-1',
      GITHUB_TOKEN: 'gh-2',
      ERRAND_X: 'e-3',
      TEMPORAL_API_KEY: 't-4',
      FOO: 'f-5',
    };
    const host = {
      bwrapPath: BWRAP,
      userHome: bench.home,
      errandHome: bench.home,
      env: { ...process.env, ...secrets },
    };
    Object.assign(process.env, secrets);
    try {
      const request = { mode: 'workspace-write', roots: [bench.workspace], network: false } as const;
      const sandbox = await planSandbox(host, { ...request, scratch: join(bench.home, 'scratch') });
      const command = 'env; cat /proc/*/environ | tr "\\0" "\\n"; echo path=$PATH';
      for (const plan of [sandbox, await bench.plan({ mode: 'full-access' })]) {
        const text = await bench.text(plan === sandbox ? command : 'env; cat /proc/$PPID/environ | tr "\\0" "\\n"', {
          sandbox: plan,
        });
        for (const value of Object.values(secrets)) expect(text).not.toContain(value);
        expect(text).toContain('PATH=/');
      }
    } finally {
      for (const name of Object.keys(secrets)) delete process.env[name];
    }
  });

  it('reaches no network unless it is allowed', async () => {
    const server = createServer((_request, response) => response.end('reached')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const command = `exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3`;
    try {
      expect(await bench.text(command)).toMatch(/Connection refused|unreachable/);
      expect(await bench.text(command, { sandbox: await bench.plan({ network: true }) })).toContain('reached');
    } finally {
      server.close();
    }
  });

  it('changes nothing in read-only mode', async () => {
    writeFileSync(join(bench.workspace, 'kept'), 'content\n');
    const text = await bench.text('cat kept; echo x > new; rm kept', {
      sandbox: await bench.plan({ mode: 'read-only' }),
    });
    expect(text).toMatch(/^content\n/);
    expect(text.match(/Read-only file system/g)).toHaveLength(2);
    expect(existsSync(join(bench.workspace, 'kept'))).toBe(true);
  });

  it('keeps HOME and /tmp from one command to the next, and leaves nothing in the real ones', async () => {
    await bench.text('echo 1 > ~/note; echo 2 > /tmp/note');
    expect(await bench.text('cat ~/note /tmp/note; echo $HOME')).toBe('1\n2\n/run/errand/home\nexit code: 0');
    expect(existsSync('/tmp/note')).toBe(false);
  });

  it('sees no processes of the host', async () => {
    expect(await bench.text(`kill -0 ${process.pid} || echo unseen`)).toContain('unseen');
  });
});

describe.skipIf(BWRAP === null)('a workspace', async () => {
  const bench = await openJobBench();
  const git = join(bench.workspace, '.git');
  mkdirSync(join(git, 'hooks'), { recursive: true });
  writeFileSync(join(git, 'config'), '[core]\n');

  it('cannot be armed through git: hooks, config and the folder itself stay as they are', async () => {
    const text = await bench.text(
      'echo x > .git/hooks/pre-commit; echo x >> .git/config; mv .git .git2; mv .git/hooks .git/h; rm -rf .git/hooks; echo ok > .git/index',
    );
    expect(text).toMatch(/exit code: 0$/);
    expect(text).toMatch(/hooks\/pre-commit: Read-only file system/);
    expect(text).toMatch(/config: Read-only file system/);
    expect(readdirSync(git).sort()).toEqual(['config', 'hooks', 'index']);
  });

  it('cannot be armed with settings it did not have; nothing is left behind by the protection', async () => {
    const text = await bench.text('mkdir .claude && echo "{}" > .claude/settings.json; echo ../x > .git/commondir');
    expect(text).toContain('removed, because commands may not create them');
    expect([existsSync(join(bench.workspace, '.claude')), existsSync(join(git, 'commondir'))]).toEqual([false, false]);
    await bench.text('true');
    expect(readdirSync(bench.workspace)).toEqual(['.git']);
  });

  it('keeps settings that are there readable and unchanged', async () => {
    mkdirSync(join(bench.workspace, '.errand'));
    writeFileSync(join(bench.workspace, '.errand', 'policy.yaml'), 'deny: []\n');
    const text = await bench.text('cat .errand/policy.yaml; echo allow >> .errand/policy.yaml; mv .errand x');
    expect(text).toMatch(/^deny: \[\]\n/);
    expect(readdirSync(join(bench.workspace, '.errand'))).toEqual(['policy.yaml']);
    rmSync(join(bench.workspace, '.errand'), { recursive: true });
  });
});

describe.skipIf(BWRAP === null)('stored results', async () => {
  const bench = await openJobBench();

  it('can be read, not written, although the home around them is out of sight', async () => {
    const results = join(bench.home, 'transcripts', 'results');
    mkdirSync(results, { recursive: true });
    writeFileSync(join(results, 'long.txt'), 'stored\n');
    writeFileSync(join(bench.home, 'transcripts', 'other'), 'hidden');
    const sandbox = await bench.plan({ readable: [results, join(results, 'missing')] });
    const command = `cat ${results}/long.txt ${results}/../other; echo x > ${results}/long.txt`;
    const text = await bench.text(command, { sandbox });
    expect(text).toMatch(/^stored\n/);
    expect(text).toContain('No such file');
    expect(text).toContain('Read-only file system');
  });
});

describe.skipIf(BWRAP === null)('secrets', () => {
  it('are out of sight wherever they are, while the rest of the home can be read', async () => {
    // Everything in one workspace, because /tmp itself is replaced inside.
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'errand-secrets-')));
    const bench = await openJobBench();
    try {
      for (const folder of ['.ssh', '.toolchain', 'errand-home', 'real-aws']) mkdirSync(join(root, folder));
      writeFileSync(join(root, '.ssh', 'id'), 'secret-1');
      writeFileSync(join(root, '.npmrc'), 'secret-2');
      writeFileSync(join(root, 'errand-home', 'config.yaml'), 'secret-3');
      writeFileSync(join(root, 'real-aws', 'credentials'), 'secret-4');
      symlinkSync('real-aws', join(root, '.aws'));
      writeFileSync(join(root, '.toolchain', 'version'), 'readable');
      const host = { bwrapPath: BWRAP, userHome: root, errandHome: join(root, 'errand-home'), env: process.env };
      const scratch = join(bench.home, 'secrets');
      const sandbox = await planSandbox(host, { mode: 'workspace-write', roots: [root], network: false, scratch });
      const text = await bench.text('cat .ssh/* .npmrc errand-home/* .aws/* real-aws/*; cat .toolchain/version', {
        sandbox,
        cwd: root,
      });
      expect(text).toContain('readable');
      expect(text).not.toContain('secret-');
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});

it('full access is the only mode without bubblewrap; the others are refused with what to install', async () => {
  const host = { bwrapPath: null, userHome: '/nowhere', errandHome: '/nowhere/.errand', env: { PATH: '/usr/bin' } };
  const request = { roots: ['/srv/w'], network: false, scratch: '/nowhere/scratch' };
  expect(await planSandbox(host, { ...request, mode: 'full-access' })).toMatchObject({ kind: 'none' });
  expect(await planSandbox(host, { ...request, mode: 'workspace-write' })).toMatchObject({
    kind: 'refused',
    fix: expect.stringContaining('apt install bubblewrap') as string,
  });
});

it('the whole file system is no workspace', async () => {
  const host = { bwrapPath: BWRAP, userHome: '/nowhere', errandHome: '/nowhere/.errand', env: {} };
  const request = { mode: 'workspace-write', roots: ['/'], network: false, scratch: '/nowhere' } as const;
  expect(await planSandbox(host, request)).toMatchObject({
    kind: 'refused',
    reason: 'the workspace / cannot be contained',
  });
});

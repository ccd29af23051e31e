import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { RETENTION_DAYS } from '../../src/server/temporal-command.ts';
import { isRunning, socketInodes } from '../helpers/processes.ts';
import { embedded, ensureServer, eventually, freshHome, optionsFor, stopServer, workerEvents } from './test-home.ts';

const BUILT = fileURLToPath(new URL('../../dist/server/index.js', import.meta.url));

describe('ensureServer', () => {
  it('makes one server of many calls at once, from several processes', async () => {
    const home = freshHome();
    const { log: _log, lines: _lines, ...options } = optionsFor(home);
    const elsewhere = `
      const { ensureServer } = await import(${JSON.stringify(BUILT)});
      const info = await ensureServer({ ...JSON.parse(process.argv[1]), log: () => {} });
      console.log(JSON.stringify(info));`;
    const other = spawn(process.execPath, ['--input-type=module', '-e', elsewhere, JSON.stringify(options)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const answer = other.stdout.toArray().then((chunks) => JSON.parse(Buffer.concat(chunks).toString()) as unknown);
    const infos = await Promise.all([ensureServer(optionsFor(home)), ensureServer(optionsFor(home)), answer]);
    expect(infos[1]).toEqual(infos[0]);
    expect(infos[2]).toEqual(infos[0]);
    expect(workerEvents(home).filter(({ event }) => event === 'started')).toHaveLength(2);
  });

  it('answers at the address it gives, keeps closed runs for 30 days, and listens on loopback only', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home, { workers: 0 }));
    const connection = await Connection.connect({ address: info.address });
    const { config } = await connection.workflowService.describeNamespace({ namespace: info.namespace });
    await connection.close();
    expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(RETENTION_DAYS * 24 * 3600);
    expect((await fetch(String(info.uiUrl))).status).toBe(200);
    expect(
      listeningAddresses(Number(info.pids.temporal)).filter((address) => !address.startsWith('0100007F:')),
    ).toEqual([]);
  });

  it('closes its files to everybody else', async () => {
    const home = freshHome();
    await ensureServer(optionsFor(home));
    const files = readdirSync(join(home, 'server'), { recursive: true }).map((name) =>
      join(home, 'server', String(name)),
    );
    expect(files.length).toBeGreaterThan(6);
    expect(files.filter((file) => statSync(file).mode & 0o077)).toEqual([]);
  });

  it('hands the environment of its caller to the workers and writes none of it down', async () => {
    const home = freshHome();
    const environment = { ...process.env, ANTHROPIC_API_KEY: 'sk-first-secret' };
    const info = await ensureServer(optionsFor(home, { environment }));
    expect(workerEvents(home)[0]).toMatchObject({ secret: 'sk-first-secret', address: info.address });
    await ensureServer(optionsFor(home, { environment: { ...environment, ANTHROPIC_API_KEY: 'sk-second-secret' } }));
    const written = readdirSync(join(home, 'server'), { recursive: true })
      .map((name) => join(home, 'server', String(name)))
      .filter((file) => statSync(file).isFile())
      .map((file) => readFileSync(file, 'utf8'));
    expect(written.join('\n')).not.toMatch(/sk-(first|second)-secret/);
  });

  it('restarts the workers when the environment or the build changes, and only then', async () => {
    const home = freshHome();
    const first = await ensureServer(optionsFor(home));
    const same = await ensureServer(optionsFor(home, { environment: { ...process.env, EDITOR: 'ed' } }));
    expect(same.pids).toEqual(first.pids);

    const environment = { ...process.env, ERRAND_MODEL: 'model-b' };
    const changed = optionsFor(home, { environment });
    const second = await ensureServer(changed);
    expect(changed.lines).toContain('workers restarted: changed environment');
    expect(second.pids.temporal).toBe(first.pids.temporal);
    expect(first.pids.workers.filter(isRunning)).toEqual([]);
    expect(workerEvents(home).at(-3)).toMatchObject({ event: 'started', model: 'model-b' });

    const kept = await ensureServer(optionsFor(home, { keepEnvironment: true }));
    expect(kept.pids).toEqual(second.pids);

    const third = await ensureServer(optionsFor(home, { environment, buildId: 'next-build' }));
    expect(third.buildId).toBe('next-build');
    expect(second.pids.workers.filter(isRunning)).toEqual([]);
  });

  it('changes the number of workers without touching the others', async () => {
    const home = freshHome();
    const one = await ensureServer(optionsFor(home, { workers: 1 }));
    const three = await ensureServer(optionsFor(home, { workers: 3 }));
    expect(three.pids.workers).toHaveLength(3);
    expect(three.pids.workers).toContain(one.pids.workers[0]);
    const again = await ensureServer(optionsFor(home, { workers: 1 }));
    expect(again.pids.workers).toEqual(one.pids.workers);
  });

  it('says why a worker does not get ready, with the end of its log', async () => {
    const home = freshHome();
    const environment = { ...process.env, FAKE_WORKER: 'broken' };
    await expect(ensureServer(optionsFor(home, { environment, workers: 1 }))).rejects.toThrow(
      /worker w1 ended before it was ready.*\n?.*worker-w1\.log[^]*the key is not set/,
    );
  });

  it('keeps the old workers when the new ones do not get ready', async () => {
    const home = freshHome();
    const good = await ensureServer(optionsFor(home));
    const broken = optionsFor(home, { environment: { ...process.env, FAKE_WORKER: 'broken', ERRAND_MODEL: 'x' } });
    await expect(ensureServer(broken)).rejects.toThrow('the key is not set');
    expect(good.pids.workers.filter(isRunning)).toEqual(good.pids.workers);
    expect((await ensureServer(optionsFor(home))).pids).toEqual(good.pids);
  });

  it('chooses another port when a stranger has the remembered one, remembers it and says so', async () => {
    const home = freshHome();
    const before = await ensureServer(optionsFor(home, { workers: 0 }));
    await stopServer({ home, log: () => undefined });
    const stranger = createServer().listen({ host: '127.0.0.1', port: portOf(before.address) });
    await once(stranger, 'listening');
    const options = optionsFor(home, { workers: 1 });
    const after = await ensureServer(options);
    stranger.close();
    expect(after.address).not.toBe(before.address);
    expect(after.uiUrl).toBe(before.uiUrl);
    expect(options.lines.join('\n')).toContain(`port ${portOf(before.address)} (grpc) is taken by another program`);
    expect(JSON.parse(readFileSync(join(home, 'server/ports.json'), 'utf8'))).toMatchObject({
      grpc: portOf(after.address),
    });
    expect(workerEvents(home)[0]?.address).toBe(after.address);
  });

  it('copies the database before a server of another version opens it, and keeps its runs', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home, { workers: 0 }));
    await startRun(info.address, 'a-run');
    await stopServer({ home, log: () => undefined });
    writeFileSync(join(home, 'server/temporal.db.note.json'), '{"serverVersion":"1.8.0","retentionSet":true}');
    const options = optionsFor(home, { workers: 0 });
    const later = await ensureServer(options);
    expect(options.lines.join('\n')).toContain('Temporal CLI 1.8.0 -> ');
    expect(existsSync(join(home, 'server/temporal.db.1.8.0.bak/temporal.db'))).toBe(true);
    expect(existsSync(join(home, 'server/temporal.db.1.8.0.bak/temporal.db-wal'))).toBe(true);
    expect(await describeRun(later.address, 'a-run')).toBe('RUNNING');
  });

  it('promise 10: refuses a database that a newer Temporal CLI had open, before anything starts', async () => {
    const home = freshHome();
    await ensureServer(optionsFor(home, { workers: 0 }));
    await stopServer({ home, log: () => undefined });
    const before = serverFiles(home);
    const older = ensureServer(optionsFor(home, { temporalCli: cliOfVersion(home, '1.8.0') }));
    await expect(older).rejects.toThrow(ConfigError);
    await expect(older).rejects.toThrow(/temporal\.db was last opened by Temporal CLI .* the one found is 1\.8\.0/);
    expect(serverFiles(home)).toEqual(before);
  });

  it('promise 10: the supervisor refuses it too, when the CLI becomes an older one under it', async () => {
    const home = freshHome();
    const temporalCli = cliOfVersion(home, '99.0.0');
    const info = await ensureServer(optionsFor(home, { workers: 0, temporalCli }));
    cliOfVersion(home, '98.0.0');
    process.kill(Number(info.pids.temporal), 'SIGKILL');
    await eventually('the killed server is noticed', async () => Number((await embedded(home)).temporal?.restarts) > 0);
    const asked = ensureServer(optionsFor(home, { workers: 0, temporalCli }));
    await expect(asked).rejects.toThrow(ConfigError);
    await expect(asked).rejects.toThrow(/last opened by Temporal CLI 99\.0\.0; the one found is 98\.0\.0/);
    cliOfVersion(home, '99.0.0');
    const after = await ensureServer(optionsFor(home, { workers: 0, temporalCli }));
    expect(after.address).toBe(info.address);
    expect(readdirSync(join(home, 'server')).filter((name) => name.includes('.bak'))).toEqual([]);
  });

  it('runs only workers for a server that is not its own', async () => {
    const home = freshHome();
    const other = { address: '127.0.0.1:1', namespace: 'elsewhere' };
    const info = await ensureServer(optionsFor(home, { other }));
    expect(info).toMatchObject({ embedded: false, address: '127.0.0.1:1', namespace: 'elsewhere' });
    expect([info.uiUrl, info.pids.temporal]).toEqual([undefined, undefined]);
    expect(workerEvents(home).map(({ address }) => address)).toEqual([undefined, undefined]);
    await stopServer({ home, log: () => undefined });
    expect(info.pids.workers.filter(isRunning)).toEqual([]);
  });

  it('works in a home whose path is too long for a socket', async () => {
    const home = join(freshHome(), 'a-folder-with-quite-a-long-name'.repeat(4));
    mkdirSync(home);
    const info = await ensureServer(optionsFor(home, { workers: 1 }));
    expect((await ensureServer(optionsFor(home, { workers: 1 }))).pids).toEqual(info.pids);
    await stopServer({ home, log: () => undefined });
    expect(isRunning(info.pids.supervisor)).toBe(false);
  });
});

describe('the supervisor', () => {
  it('restarts a killed server on the same port with the same data', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    await startRun(info.address, 'outlives-the-server');
    process.kill(Number(info.pids.temporal), 'SIGKILL');
    await eventually('another server is ready', async () => {
      const { temporal } = await embedded(home);
      return temporal?.phase === 'ready' && temporal.pid !== info.pids.temporal;
    });
    const after = await ensureServer(optionsFor(home));
    expect(after.address).toBe(info.address);
    expect(after.pids.workers).toEqual(info.pids.workers);
    expect(await describeRun(after.address, 'outlives-the-server')).toBe('RUNNING');
    expect((await embedded(home)).temporal?.restarts).toBe(1);
  });

  it('promise 1: kills and restarts a worker that runs and says nothing any more', async () => {
    const home = freshHome();
    const environment = { ...process.env, FAKE_WORKER: 'speaking' };
    const options = optionsFor(home, { environment });
    await ensureServer(options);
    const before = await embedded(home);
    process.kill(Number(before.workers[0]?.pid), 'SIGSTOP');
    await eventually('the silent worker to be replaced', async () => (await embedded(home)).workers[0]?.restarts === 1);
    const after = await embedded(home);
    expect(after.workers[0]?.pid).not.toBe(before.workers[0]?.pid);
    expect(after.workers[1]).toMatchObject({ pid: before.workers[1]?.pid, restarts: 0 });
  });

  it('restarts a killed worker under another identity, reports the death, and leaves the others alone', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    const before = await embedded(home);
    const victim = before.workers[0];
    process.kill(Number(victim?.pid), 'SIGKILL');
    await eventually('another w1 is ready', async () => {
      const [first] = (await embedded(home)).workers;
      return first?.phase === 'ready' && first.pid !== victim?.pid;
    });
    const after = await embedded(home);
    expect(after.workers[0]?.identity).not.toBe(victim?.identity);
    expect(after.workers[1]).toMatchObject({ pid: before.workers[1]?.pid, restarts: 0 });
    expect(readFileSync(join(info.logs, 'supervisor.log'), 'utf8')).toContain(
      `worker ${victim?.identity} ended by SIGKILL`,
    );
  });

  it('is replaced after its own kill, and nothing of it is left', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    await startRun(info.address, 'outlives-the-supervisor');
    process.kill(info.pids.supervisor, 'SIGKILL');
    const after = await ensureServer(optionsFor(home));
    expect(after.address).toBe(info.address);
    expect([info.pids.supervisor, Number(info.pids.temporal), ...info.pids.workers].filter(isRunning)).toEqual([]);
    expect(after.pids.workers).toHaveLength(2);
    expect(await describeRun(after.address, 'outlives-the-supervisor')).toBe('RUNNING');
  });

  it('is replaced after a kill before it had written down what it started, and nothing of it is left', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    process.kill(info.pids.supervisor, 'SIGKILL');
    writeFileSync(join(home, 'server/state.json'), '');
    const after = await ensureServer(optionsFor(home));
    await eventually('the old workers are gone', () => info.pids.workers.filter(isRunning).length === 0);
    expect(after.pids.workers.filter(isRunning)).toHaveLength(2);
  });

  it('stops everything when its home is deleted, since nobody could find it any more', async () => {
    const home = freshHome();
    const { pids } = await ensureServer(optionsFor(home));
    rmSync(home, { recursive: true });
    process.kill(Number(pids.workers[0]), 'SIGKILL');
    const all = [pids.supervisor, Number(pids.temporal), ...pids.workers];
    await eventually('all of it is gone', () => all.filter(isRunning).length === 0);
  });

  it('is in a session of its own and survives the hang-up of a terminal', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home, { workers: 0 }));
    process.kill(info.pids.supervisor, 'SIGHUP');
    await eventually('the hang-up is noted', () =>
      readFileSync(join(info.logs, 'supervisor.log'), 'utf8').includes('going on'),
    );
    const session = readFileSync(`/proc/${info.pids.supervisor}/stat`, 'utf8').split(') ')[1]?.split(' ')[3];
    expect(session).toBe(String(info.pids.supervisor));
    expect((await ensureServer(optionsFor(home, { workers: 0 }))).pids).toEqual(info.pids);
  });
});

/** The Temporal CLI, but for the version that it gives itself. */
function cliOfVersion(home: string, version: string): string {
  const cli = loadConfig({ env: process.env }).tools.temporal.value.path;
  const file = join(home, 'temporal');
  const script = `#!/bin/sh\n[ "$1" = --version ] && exec echo "temporal version ${version} (Server 1.0.0)"\nexec '${cli}' "$@"\n`;
  writeFileSync(file, script, { mode: 0o700 });
  return file;
}

/** What is there of a server that does not run, byte for byte. */
function serverFiles(home: string): Record<string, string> {
  const names = readdirSync(join(home, 'server'), { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(join(home, 'server', name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(home, 'server', name), 'base64')]));
}

function portOf(address: string): number {
  return Number(address.split(':')[1]);
}

async function startRun(address: string, workflowId: string): Promise<void> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  await client.workflow.start('never-run', { workflowId, taskQueue: 'nobody-polls' });
  await connection.close();
}

async function describeRun(address: string, workflowId: string): Promise<string> {
  const connection = await Connection.connect({ address });
  const { status } = await new Client({ connection }).workflow.getHandle(workflowId).describe();
  await connection.close();
  return status.name;
}

/** Local addresses (hexadecimal, as the kernel writes them) of the sockets a process listens on. */
function listeningAddresses(pid: number): string[] {
  const rows = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n').slice(1),
  );
  const listening = rows.map((row) => row.trim().split(/\s+/)).filter((row) => row[3] === '0A');
  const inodes = socketInodes(pid);
  const addresses = listening.filter((row) => inodes.has(String(row[9]))).map((row) => String(row[1]));
  expect(addresses.length).toBeGreaterThanOrEqual(4);
  return addresses;
}

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serverStatus } from '../../src/server/index.ts';
import { identifyProcess } from '../../src/process-identity.ts';
import { isRunning } from '../helpers/processes.ts';
import { ensureServer, freshHome, optionsFor, stopServer, workerEvents } from './test-home.ts';

const quiet = () => undefined;

describe('stopServer', () => {
  it('stops workers while the server still answers, then the server, and leaves nothing', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    const { supervisor, temporal, workers } = info.pids;
    await stopServer({ home, log: quiet });
    expect([supervisor, Number(temporal), ...workers].filter(isRunning)).toEqual([]);
    const endings = workerEvents(home).filter(({ event }) => event === 'ended');
    expect(endings.map(({ isServerUp }) => isServerUp)).toEqual([true, true]);
    expect(await serverStatus({ home })).toEqual({ running: false, instances: [] });
  });

  it('may be called twice, at once, and where nothing ever ran', async () => {
    const home = freshHome();
    await stopServer({ home, log: quiet });
    const info = await ensureServer(optionsFor(home, { workers: 1 }));
    await Promise.all([stopServer({ home, log: quiet }), stopServer({ home, log: quiet })]);
    await stopServer({ home, log: quiet });
    expect([info.pids.supervisor, Number(info.pids.temporal), ...info.pids.workers].filter(isRunning)).toEqual([]);
  });

  it('finds what a killed supervisor left', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home));
    process.kill(info.pids.supervisor, 'SIGKILL');
    await stopServer({ home, log: quiet });
    expect([Number(info.pids.temporal), ...info.pids.workers].filter(isRunning)).toEqual([]);
    const endings = workerEvents(home).filter(({ event }) => event === 'ended');
    expect(endings.map(({ isServerUp }) => isServerUp)).toEqual([true, true]);
  });

  it('finds workers that were started but never written down, and leaves those of another home alone', async () => {
    const [home, other] = [freshHome(), freshHome()];
    const info = await ensureServer(optionsFor(home, { workers: 2 }));
    const strangers = await ensureServer(optionsFor(other, { workers: 1 }));
    process.kill(info.pids.supervisor, 'SIGKILL');
    writeFileSync(join(home, 'server/state.json'), '');
    await stopServer({ home, log: quiet });
    expect(info.pids.workers).toHaveLength(2);
    expect(info.pids.workers.filter(isRunning)).toEqual([]);
    expect(strangers.pids.workers.map(isRunning)).toEqual([true]);
  });

  it('finds a server that was started but never written down', async () => {
    const home = freshHome();
    const info = await ensureServer(optionsFor(home, { workers: 0 }));
    process.kill(info.pids.supervisor, 'SIGKILL');
    writeFileSync(join(home, 'server/state.json'), '');
    await stopServer({ home, log: quiet });
    expect(isRunning(Number(info.pids.temporal))).toBe(false);
  });

  it('kills a worker that does not end within its time', async () => {
    const home = freshHome();
    const environment = { ...process.env, FAKE_WORKER: 'deaf' };
    const info = await ensureServer(optionsFor(home, { environment, workers: 1, graceMs: 2_000 }));
    await stopServer({ home, log: quiet });
    expect(workerEvents(home).at(-1)?.event).toBe('deaf');
    expect(readFileSync(join(info.logs, 'supervisor.log'), 'utf8')).toMatch(
      /worker errand-\S+ ended by SIGKILL while it was being stopped/,
    );
    expect(info.pids.workers.filter(isRunning)).toEqual([]);
  });

  it('at the same time as a start leaves either everything or nothing, never a part', async () => {
    const home = freshHome();
    const first = await ensureServer(optionsFor(home));
    const stops = [stopServer({ home, log: quiet }), stopServer({ home, log: quiet })];
    const [second] = await Promise.all([ensureServer(optionsFor(home)), ...stops]);
    const running = [first, second].flatMap(({ pids }) => [pids.supervisor, ...pids.workers]).filter(isRunning);
    const known = (await serverStatus({ home })).instances.flatMap(({ supervisorPid, workers }) => [
      supervisorPid,
      ...workers.map(({ pid }) => pid),
    ]);
    expect(known).toEqual(running);
  });

  it('does not touch a stranger who got the number of a dead worker', async () => {
    const home = freshHome();
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    const identity = identifyProcess(Number(stranger.pid));
    const dead = { ...identity, startTime: '1' };
    const worker = { name: 'w1', identity: 'x', buildId: 'b', process: dead, phase: 'ready', restarts: 0 };
    mkdirSync(join(home, 'server'));
    writeFileSync(
      join(home, 'server/state.json'),
      JSON.stringify({ supervisor: dead, workers: [worker], temporal: worker }),
    );
    writeFileSync(join(home, 'server/supervisor.lock'), JSON.stringify(dead));
    await stopServer({ home, log: quiet });
    const survived = isRunning(Number(stranger.pid));
    stranger.kill('SIGKILL');
    expect(survived).toBe(true);
  });
});

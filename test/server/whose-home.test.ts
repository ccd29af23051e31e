import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stopModelServer, writeModelServer } from '../../src/cli/model-server-process.ts';
import { placeOf } from '../../src/home.ts';
import { identifyProcess, ownIdentity } from '../../src/process-identity.ts';
import { takeLock } from '../../src/server/life-lock.ts';
import { homeTrouble } from '../../src/server/whose-home.ts';

let folder: string;
let home: string;
let copy: string;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'errand-whose-')));
  [home, copy] = [join(folder, 'home'), join(folder, 'copy')];
  mkdirSync(join(home, 'server'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lock = () => join(home, 'server/supervisor.lock');

it('a lock says whose home it is: in a copy another one’s, after a move its own', () => {
  takeLock(lock(), placeOf(home));
  expect(homeTrouble(home)).toBeUndefined();
  cpSync(home, copy, { recursive: true });
  expect(homeTrouble(copy)).toEqual({ kind: 'copy', path: home });
  rmSync(copy, { recursive: true });
  renameSync(home, copy);
  expect(homeTrouble(copy)).toEqual({ kind: 'moved', path: home });
});

it('a copy of a home whose processes are dead is nobody else’s', () => {
  const dead = { ...identifyProcess(process.pid), startTime: '1', home: placeOf(home) };
  writeFileSync(lock(), JSON.stringify(dead));
  writeFileSync(join(home, 'server/state.json'), JSON.stringify({ supervisor: dead, workers: [], home: dead.home }));
  cpSync(home, copy, { recursive: true });
  expect(homeTrouble(copy)).toBeUndefined();
});

it('files of an earlier errand, which do not say whose they are, are read as before', () => {
  writeFileSync(lock(), JSON.stringify(ownIdentity()));
  writeFileSync(join(home, 'server/state.json'), JSON.stringify({ supervisor: ownIdentity(), workers: [] }));
  cpSync(home, copy, { recursive: true });
  expect([homeTrouble(home), homeTrouble(copy)]).toEqual([undefined, undefined]);
});

it('the model simulator of the original is not stopped from a copy', async () => {
  const file = join(home, 'server/model-server.json');
  writeModelServer(file, 9);
  const child: ChildProcess = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  const known = JSON.parse(readFileSync(file, 'utf8')) as object;
  writeFileSync(file, JSON.stringify({ ...known, process: identifyProcess(Number(child.pid)) }));
  cpSync(home, copy, { recursive: true });
  const stopped = [await stopModelServer(copy), child.exitCode ?? child.signalCode, await stopModelServer(home)];
  child.kill('SIGKILL');
  expect(stopped).toEqual([false, null, true]);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { identifyProcess, isAlive, ownIdentity } from '../../src/jobs/process-identity.ts';

it('a process is alive until it ends, and its pid alone does not name it', async () => {
  const child = spawn('sleep', ['60']);
  const identity = child.pid === undefined ? undefined : identifyProcess(child.pid);
  if (!identity) throw new Error('sleep did not start');
  expect(isAlive(identity)).toBe(true);
  expect(isAlive({ ...identity, startTime: '1' })).toBe(false);
  expect(isAlive({ ...identity, bootId: 'another boot' })).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isAlive(identity)).toBe(false);
});

it('this process is alive', () => {
  expect(isAlive(ownIdentity())).toBe(true);
});

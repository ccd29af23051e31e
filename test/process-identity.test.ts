import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import {
  identifyProcess,
  isAlive,
  isSameProcess,
  ownIdentity,
  signalProcess,
  toProcessIdentity,
} from '../src/process-identity.ts';

describe('a process identity', () => {
  it('is that of one process, through JSON too', () => {
    const self = ownIdentity();
    const read = toProcessIdentity(JSON.parse(JSON.stringify(self)));
    expect(read && isSameProcess(read, self) && isAlive(read)).toBe(true);
    expect(toProcessIdentity({ pid: 'x' })).toBeUndefined();
  });

  it('of an earlier file (startedAt) is read, and written as startTime from then on', () => {
    const { startTime, ...rest } = ownIdentity();
    const read = toProcessIdentity({ ...rest, startedAt: startTime });
    expect(read).toEqual(ownIdentity());
    expect(read && isAlive(read)).toBe(true);
  });

  it('differs in start time from a later process with the same pid, and in boot from one before a reboot', () => {
    const self = ownIdentity();
    expect(isAlive({ ...self, startTime: '1' })).toBe(false);
    expect(isAlive({ ...self, bootId: 'another boot' })).toBe(false);
  });

  it('is of no living process once it ended, even before anybody collected it', async () => {
    // The shell is replaced by a sleep that never collects the child it inherits, so that child stays a zombie.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 30'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [chunk] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(chunk.toString());
    await expect.poll(() => identifyProcess(pid)).toBeDefined();
    await expect
      .poll(() => {
        const zombie = identifyProcess(pid);
        return zombie && isAlive(zombie);
      })
      .toBe(false);
    parent.kill('SIGKILL');
  });

  it('is signalled only while it lives', async () => {
    const child = spawn('sleep', ['30']);
    const identity = identifyProcess(Number(child.pid));
    if (!identity) throw new Error('the child has no identity');
    expect(signalProcess({ ...identity, startTime: '1' }, 'SIGKILL')).toBe(false);
    expect(signalProcess(identity, 'SIGKILL')).toBe(true);
    const [, signal] = (await once(child, 'exit')) as [unknown, string];
    expect(signal).toBe('SIGKILL');
    expect(signalProcess(identity, 'SIGKILL')).toBe(false);
  });
});

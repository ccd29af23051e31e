import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readLock, releaseLock, takeLock } from '../../src/server/life-lock.ts';
import { identifyProcess, ownIdentity } from '../../src/process-identity.ts';

let folder = '';
let lock = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'errand-lock-'));
  lock = join(folder, 'lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a life lock', () => {
  it('is held by one and free again once released', () => {
    expect(takeLock(lock)).toBe(true);
    expect(takeLock(lock)).toBe(false);
    expect(readLock(lock)?.pid).toBe(process.pid);
    releaseLock(lock);
    expect(readLock(lock)).toBeUndefined();
    expect(takeLock(lock)).toBe(true);
  });

  it.each([
    ['a dead process', JSON.stringify({ ...identifyProcess(process.pid), startTime: '1' })],
    ['an earlier boot', JSON.stringify({ ...identifyProcess(process.pid), bootId: 'before' })],
    ['a power cut', ''],
  ])('of %s is taken over', (_whose, text) => {
    writeFileSync(lock, text);
    expect(readLock(lock)).toBeUndefined();
    expect(takeLock(lock)).toBe(true);
    expect(readdirSync(folder)).toEqual(['lock']);
  });

  it('of a living process is respected in the spelling of an earlier errand too', () => {
    const { startTime, ...rest } = ownIdentity();
    writeFileSync(lock, JSON.stringify({ ...rest, startedAt: startTime }));
    expect(readLock(lock)).toEqual(ownIdentity());
    expect(takeLock(lock)).toBe(false);
  });

  it('is not stuck when who broke a stale one died doing so', () => {
    const dead = JSON.stringify({ ...identifyProcess(process.pid), startTime: '1' });
    writeFileSync(lock, dead);
    writeFileSync(`${lock}.breaker`, dead);
    expect([takeLock(lock), takeLock(lock)]).toEqual([false, true]);
  });
});

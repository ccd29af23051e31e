import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, describe, expect, it } from 'vitest';
import { outageFailure, toStoreFailure, troubleTimes } from '../../src/activities/trouble.ts';
import { FAILURES, storeUnavailable } from '../../src/failures.ts';
import { readStored } from '../../src/jobs/durable-file.ts';

const home = mkdtempSync(join(tmpdir(), 'errand-trouble-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function nodeError(code: string, path?: string): Error {
  return Object.assign(new Error(`${code}: what the kernel says`), { code, syscall: 'write', ...(path && { path }) });
}

describe('trouble of the machine', () => {
  it.each([
    ['ENOSPC', undefined, /^disk full \(ENOSPC: what the kernel says\)$/],
    ['EDQUOT', undefined, /^disk quota used up/],
    ['EROFS', '/elsewhere', /^file system is read-only/],
    ['EIO', undefined, /^disk error/],
    ['EACCES', join(home, 'journal'), /^no permission/],
    ['ENOENT', join(home, 'transcripts/x.jsonl'), /^a file or folder is missing/],
  ])('%s is waited out, with words for people', (code, path, message) => {
    const failure = toStoreFailure(nodeError(code, path), home);
    expect(failure).toBeInstanceOf(ApplicationFailure);
    expect(failure).toMatchObject({ type: FAILURES.storeUnavailable, nonRetryable: false });
    expect((failure as Error).message).toMatch(message);
  });

  it('a real folder that is a file is named', async () => {
    writeFileSync(join(home, 'journal'), '');
    const error = await readFile(join(home, 'journal/x')).catch((caught: unknown) => caught);
    expect(toStoreFailure(error, home)).toMatchObject({
      type: FAILURES.storeUnavailable,
      message: expect.stringContaining(join(home, 'journal/x')) as string,
    });
  });

  it.each([
    ['permissions of somebody else’s file', nodeError('EACCES', '/workspace/a.txt')],
    ['a folder that only begins like the home', nodeError('EACCES', `${home}-other/x`)],
    ['a bug', new TypeError('x is undefined')],
    ['an answer of the server', Object.assign(new Error('unavailable'), { code: 14 })],
  ])('%s is left as it is', (_, error) => {
    expect(toStoreFailure(error, home)).toBe(error);
  });

  it.each([
    ['newer', '{"v":2}', /newer errand \(version 2, this one knows 1\)/],
    ['damaged', '{"v":1', /damaged. Nothing was run or overwritten/],
    ['foreign', '[]', /is not a file of errand/],
  ])('a stored file that is %s is final', async (name, text, message) => {
    const file = join(home, `${name}.json`);
    writeFileSync(file, text);
    const error = await readStored(file).catch((caught: unknown) => caught);
    const failure = toStoreFailure(error, home);
    expect(failure).toMatchObject({ type: FAILURES.storeInvalid, nonRetryable: true });
    expect((failure as Error).message).toMatch(message);
    expect((failure as Error).message).toContain(file);
  });
});

describe('an outage', () => {
  const full = storeUnavailable('disk full (ENOSPC)');
  const facts = { attempt: 3, sinceMs: 90_000, lastedMs: 10_000, limitMs: 60_000 };

  it('says when it began, and is tried again after a pause that grows and varies', () => {
    const failures = Array.from({ length: 50 }, () => outageFailure(full, facts));
    expect(failures[0]).toMatchObject({ type: FAILURES.storeUnavailable, message: full.message, nonRetryable: false });
    expect(failures[0]?.details).toEqual([{ since: new Date(90_000).toISOString() }]);
    const pauses = failures.map(({ nextRetryDelay }) => Number(nextRetryDelay));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(2_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(4_000);
    expect(new Set(pauses).size).toBeGreaterThan(10);
  });

  it('keeps the pause that the model server asked for, and what else it said', () => {
    const limited = ApplicationFailure.create({
      type: FAILURES.modelRateLimited,
      nextRetryDelay: 7_000,
      details: [{ status: 429 }],
    });
    const failure = outageFailure(limited, facts);
    expect(failure.nextRetryDelay).toBe(7_000);
    expect(failure.details).toEqual([{ status: 429, since: new Date(90_000).toISOString() }]);
  });

  const failed = (nowMs: number, isGone = false) => ({ isGone, nowMs, workedMs: 500 });

  it('of a disk that was away does not count for a file that is missing once it is back', () => {
    const away = troubleTimes(undefined, failed(1_000));
    expect(away).toEqual({ troubleSinceMs: 1_000, lastedMs: 0, seenMs: 1_000 });
    const gone = troubleTimes({ ...away, trouble: 'a file or folder is missing' }, failed(60_000, true));
    expect(gone).toMatchObject({ troubleSinceMs: 1_000, goneSinceMs: 60_000 });
    expect(troubleTimes(gone, failed(61_000, true))).toMatchObject({ troubleSinceMs: 1_000, goneSinceMs: 60_000 });
    expect(troubleTimes(gone, failed(61_000))).not.toHaveProperty('goneSinceMs');
  });

  it('lasts from attempt to attempt, but not while the machine sleeps over the weekend', () => {
    const friday = { ...troubleTimes(undefined, failed(1_000)), pauseMs: 30_000 };
    const later = { ...troubleTimes(friday, failed(40_000)), pauseMs: 60_000 };
    expect(later).toMatchObject({ troubleSinceMs: 1_000, lastedMs: 39_000, seenMs: 40_000 });
    const monday = troubleTimes(later, failed(60 * 3600_000));
    expect(monday.troubleSinceMs).toBe(1_000);
    expect(monday.lastedMs).toBeLessThan(5 * 60_000);
    expect(troubleTimes(later, failed(30_000)).lastedMs).toBe(39_000);
  });

  it('that a worker of an older build has met lasts since then', () => {
    expect(troubleTimes({ troubleSinceMs: 1_000 }, failed(61_000)).lastedMs).toBe(60_000);
  });

  it('never pauses past its limit', () => {
    expect(Number(outageFailure(full, { ...facts, attempt: 20, lastedMs: 59_500 }).nextRetryDelay)).toBe(500);
  });

  it('is given up after its limit, with the reason', () => {
    expect(outageFailure(full, { ...facts, lastedMs: 60_000 })).toMatchObject({
      type: FAILURES.storeUnavailable,
      nonRetryable: true,
      message: 'gave up after 60 s of trouble (limits.outageMs): disk full (ENOSPC)',
    });
  });

  it('without a limit is never given up', () => {
    const failure = outageFailure(full, { ...facts, lastedMs: 1e12, limitMs: Number.POSITIVE_INFINITY });
    expect(failure.nonRetryable).toBe(false);
  });
});

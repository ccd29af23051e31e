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
  const facts = { attempt: 3, nowMs: 100_000, limitMs: 60_000 };

  it('says when it began, and is tried again after a pause that grows and varies', () => {
    const failures = Array.from({ length: 50 }, () => outageFailure(full, { ...facts, sinceMs: 90_000 }));
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
    const failure = outageFailure(limited, { ...facts, sinceMs: 90_000 });
    expect(failure.nextRetryDelay).toBe(7_000);
    expect(failure.details).toEqual([{ status: 429, since: new Date(90_000).toISOString() }]);
  });

  it('of a disk that was away does not count for a file that is missing once it is back', () => {
    const away = troubleTimes(undefined, false, 1_000);
    expect(away).toEqual({ troubleSinceMs: 1_000 });
    const gone = troubleTimes({ ...away, trouble: 'a file or folder is missing' }, true, 60_000);
    expect(gone).toEqual({ troubleSinceMs: 1_000, goneSinceMs: 60_000 });
    expect(troubleTimes(gone, true, 61_000)).toEqual(gone);
    expect(troubleTimes(gone, false, 61_000)).toEqual(away);
  });

  it('never pauses past its limit', () => {
    expect(Number(outageFailure(full, { ...facts, attempt: 20, sinceMs: 40_500 }).nextRetryDelay)).toBe(500);
  });

  it('is given up after its limit, with the reason', () => {
    expect(outageFailure(full, { ...facts, sinceMs: 40_000 })).toMatchObject({
      type: FAILURES.storeUnavailable,
      nonRetryable: true,
      message: 'gave up after 60 s of trouble (limits.outageMs): disk full (ENOSPC)',
    });
  });

  it('without a limit is never given up', () => {
    const failure = outageFailure(full, { ...facts, sinceMs: 0, nowMs: 1e12, limitMs: Number.POSITIVE_INFINITY });
    expect(failure.nonRetryable).toBe(false);
  });
});

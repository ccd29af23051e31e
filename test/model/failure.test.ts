import { ApplicationFailure } from '@temporalio/common';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toActivityFailure } from '../../src/model/failure.ts';
import { ModelError } from '../../src/model/model.ts';
import type { ModelErrorKind } from '../../src/model/model.ts';
import { toNotice, withoutSecrets } from '../../src/model/redact.ts';
import { retryDelay } from '../../src/model/retry-after.ts';

function failureOf(kind: ModelErrorKind, more: { retryAfterMs?: number; message?: string } = {}, attempt = 1) {
  return toActivityFailure(new ModelError({ kind, message: 'the model server said no', ...more }), attempt, () => 0);
}

describe('a failure for Temporal', () => {
  test.each<[ModelErrorKind, string, boolean]>([
    ['rate_limited', 'Model.RateLimited', true],
    ['overloaded', 'Model.Overloaded', true],
    ['server', 'Model.Server', true],
    ['timeout', 'Model.Server', true],
    ['conflict', 'Model.Server', true],
    ['connection', 'Model.Unreachable', true],
    ['cut', 'Model.Cut', true],
    ['idle', 'Model.Idle', true],
    ['aborted', 'Model.Aborted', true],
    ['invalid', 'Model.Invalid', false],
    ['invalid_thinking', 'Model.Invalid', false],
    ['context_exceeded', 'Model.ContextExceeded', false],
    ['auth', 'Model.Auth', false],
    ['billing', 'Model.Billing', false],
    ['permission', 'Model.Permission', false],
    ['not_found', 'Model.NotFound', false],
    ['too_large', 'Model.TooLarge', false],
  ])('of %s is %s', (kind, type, isRetried) => {
    const failure = failureOf(kind);
    expect(failure).toBeInstanceOf(ApplicationFailure);
    expect(failure).toMatchObject({ type, nonRetryable: !isRetried });
    expect(failure.nextRetryDelay !== undefined).toBe(isRetried);
  });

  test('is short and carries no error of the SDK', () => {
    const failure = failureOf('invalid', { message: 'ä'.repeat(400) });
    expect(Buffer.byteLength(failure.message)).toBeLessThanOrEqual(300);
    expect(failure.cause).toBeUndefined();
  });

  test('waits as long as the server said, and never less', () => {
    expect(failureOf('rate_limited', { retryAfterMs: 30_000 }).nextRetryDelay).toBe(30_000);
    expect(retryDelay(1, 30_000, () => 1)).toBe(37_500);
  });
});

describe('the wait before the next attempt', () => {
  test('doubles from a second to a minute', () => {
    const waits = [1, 2, 3, 6, 7, 8, 1000].map((attempt) => retryDelay(attempt, undefined, () => 1));
    expect(waits).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000]);
  });

  test('is spread over its upper half', () => {
    const check = (attempt: number, random: number): void => {
      const [least, most] = [retryDelay(attempt, undefined, () => 0), retryDelay(attempt, undefined, () => 1)];
      expect(least).toBe(most / 2);
      const wait = retryDelay(attempt, undefined, () => random);
      expect(wait >= least && wait <= most).toBe(true);
    };
    fc.assert(fc.property(fc.integer({ min: 1, max: 100 }), fc.double({ min: 0, max: 1, noNaN: true }), check));
  });
});

describe('error texts', () => {
  test('have no secret and no password of a URL', () => {
    expect(withoutSecrets('key k-1 at https://me:pw@host/x and k-1', ['k-1', ''])).toBe(
      'key *** at https://***@host/x and ***',
    );
  });

  test('are one line and quote little', () => {
    expect(toNotice(`it's  "${'x'.repeat(300)}"\nhere`)).toBe(`it's "${'x'.repeat(40)}…" here`);
  });
});

import { defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { waitingWords } from '../../src/client/pending.ts';
import { FAILURES } from '../../src/failures.ts';

type Pending = Parameters<typeof waitingWords>[0][number];

const SCHEDULED = 1;
const STARTED = 2;
const BEGAN = new Date(2026, 10, 30, 2, 13);
const LAST_MOVE = new Date(2026, 10, 30, 9, 0);
const NOW = new Date(2026, 10, 30, 9, 5);

function failing(type: string, message = 'x', details?: unknown): Pending {
  const payloads = details === undefined ? [] : [defaultPayloadConverter.toPayload(details)];
  return {
    activityType: { name: 'callModel' },
    attempt: 7,
    state: SCHEDULED,
    lastFailure: { message, applicationFailureInfo: { type, details: { payloads } } },
  };
}

const at = (seconds: number) => ({ seconds: { toNumber: () => seconds, valueOf: () => seconds } as never, nanos: 0 });

describe('why an agent waits', () => {
  it.each([
    [FAILURES.modelUnreachable, 'x', 'model not reachable since 02:13 (attempt 7)'],
    [FAILURES.modelRateLimited, 'x', 'model rate limit since 02:13 (attempt 7)'],
    [FAILURES.modelOverloaded, 'x', 'model overloaded since 02:13 (attempt 7)'],
    [FAILURES.modelServer, 'x', 'model server error since 02:13 (attempt 7)'],
    [FAILURES.modelCut, 'x', 'model stream cut since 02:13 (attempt 7)'],
    [FAILURES.modelIdle, 'x', 'model silent since 02:13 (attempt 7)'],
    [
      FAILURES.storeUnavailable,
      'disk full (ENOSPC: no space left on device, write)',
      'store not available: disk full since 02:13 (attempt 7)',
    ],
    [
      FAILURES.modelOtherServer,
      "this run's model server is https://host, the workers use none; do this",
      "this run's model server is https://host, the workers use none since 02:13; do this (attempt 7)",
    ],
  ])('%s: in words, from when the trouble began', (type, message, words) => {
    expect(waitingWords([failing(type, message, { since: BEGAN.toISOString() })], undefined, LAST_MOVE, NOW)).toBe(
      words,
    );
  });

  it('a failure that does not say when it began counts from the last move', () => {
    expect(waitingWords([failing(FAILURES.modelServer)], undefined, LAST_MOVE, NOW)).toContain('since 09:00');
    expect(
      waitingWords([failing(FAILURES.modelServer, 'x', { since: 'yesterday' })], undefined, LAST_MOVE, NOW),
    ).toContain('since 09:00');
  });

  it('an attempt that beats is at work, whatever ended the one before', () => {
    const atWork = {
      ...failing(FAILURES.modelCut),
      state: STARTED,
      lastStartedTime: at(100),
      lastHeartbeatTime: at(104),
    };
    expect(waitingWords([atWork], undefined, LAST_MOVE, NOW)).toBeUndefined();
    const justBegun = { ...atWork, lastHeartbeatTime: at(90) };
    expect(waitingWords([justBegun], undefined, LAST_MOVE, NOW)).toContain('model stream cut');
  });

  it('without a worker nothing takes the next step', () => {
    expect(waitingWords([{ attempt: 1, state: SCHEDULED }], undefined, LAST_MOVE, NOW)).toBe(
      'no worker has taken the next step since 09:00',
    );
    expect(waitingWords([{ attempt: 1, state: STARTED }], undefined, LAST_MOVE, NOW)).toBeUndefined();
  });

  it('what lies there for a moment waits for nobody', () => {
    const justNow = { attempt: 1, state: SCHEDULED, scheduledTime: at(NOW.getTime() / 1000 - 1) };
    expect(waitingWords([justNow], undefined, LAST_MOVE, NOW)).toBeUndefined();
    expect(waitingWords([], { since: NOW }, LAST_MOVE, NOW)).toBeUndefined();
    expect(waitingWords([], { since: LAST_MOVE }, BEGAN, NOW)).toContain('next step since 09:00');
  });

  it('says the day of what began on another one', () => {
    const friday = new Date(2026, 10, 27, 18, 30);
    const pending = [failing(FAILURES.modelUnreachable, 'x', { since: friday.toISOString() })];
    expect(waitingWords(pending, undefined, LAST_MOVE, NOW)).toBe('model not reachable since 27 Nov 18:30 (attempt 7)');
  });
});

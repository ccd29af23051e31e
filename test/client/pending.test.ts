import { defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { waitingWords } from '../../src/client/pending.ts';
import { FAILURES } from '../../src/failures.ts';

type Pending = Parameters<typeof waitingWords>[0][number];

const SCHEDULED = 1;
const STARTED = 2;
const BEGAN = new Date(2026, 10, 30, 2, 13);
const LAST_MOVE = new Date(2026, 10, 30, 9, 0);

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
    expect(waitingWords([failing(type, message, { since: BEGAN.toISOString() })], false, LAST_MOVE)).toBe(words);
  });

  it('a failure that does not say when it began counts from the last move', () => {
    expect(waitingWords([failing(FAILURES.modelServer)], false, LAST_MOVE)).toContain('since 09:00');
    expect(waitingWords([failing(FAILURES.modelServer, 'x', { since: 'yesterday' })], false, LAST_MOVE)).toContain(
      'since 09:00',
    );
  });

  it('an attempt that beats is at work, whatever ended the one before', () => {
    const atWork = {
      ...failing(FAILURES.modelCut),
      state: STARTED,
      lastStartedTime: at(100),
      lastHeartbeatTime: at(104),
    };
    expect(waitingWords([atWork], false, LAST_MOVE)).toBeUndefined();
    const justBegun = { ...atWork, lastHeartbeatTime: at(90) };
    expect(waitingWords([justBegun], false, LAST_MOVE)).toContain('model stream cut');
  });

  it('without a worker nothing takes the next step', () => {
    expect(waitingWords([{ attempt: 1, state: SCHEDULED }], false, LAST_MOVE)).toBe(
      'no worker has taken the next step since 09:00',
    );
    expect(waitingWords([{ attempt: 1, state: STARTED }], false, LAST_MOVE)).toBeUndefined();
  });
});

import { describe, expect, it } from 'vitest';
import { StaleAttemptError, mayWrite, ownerOf } from '../../src/store/owner.ts';
import type { WriteClaim } from '../../src/store/owner.ts';
import { attempt, event, reply, session, toRecords, user } from './fixtures.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';

const claim = (drafts: readonly RecordDraft[], more: Partial<WriteClaim> = {}): WriteClaim => ({
  records: toRecords(drafts),
  workflowRunId: 'run-1',
  activityAttempt: 1,
  expectedTurn: 1,
  ...more,
});
const handOver = event({}, 'owner', { workflowRunId: 'run-2' });
const neverAsked = () => Promise.reject(new Error('asked'));

describe('without a doubt the server is not asked', () => {
  it.each([
    ['an empty transcript', claim([])],
    ['the run that began it', claim([session(), user({})])],
    ['the run it was handed to', claim([session(), handOver, user({})], { workflowRunId: 'run-2' })],
    [
      'the newest attempt',
      claim([session(), user({}), attempt({}, 1, { activityAttempt: 2 })], { activityAttempt: 2 }),
    ],
    ['a higher attempt of another turn', claim([session(), attempt({ turn: 2 }, 1, { activityAttempt: 9 })])],
    ['a higher attempt of another run', claim([session(), attempt({}, 1, { activityAttempt: 9, run: 'run-0' })])],
  ])('%s', async (_, given) => {
    expect(await mayWrite(given, neverAsked)).toEqual({ newOwner: false });
  });
});

describe('a doubt is settled by the server', () => {
  const beyond = [session(), user({}), reply({}), user({ turn: 2 })];
  it.each([
    ['another run', claim([session()], { workflowRunId: 'run-2' }), true, /run-2 may not write.*run-1/],
    ['a run that was replaced', claim([session(), handOver]), true, /run-1 may not write.*run-2/],
    [
      'an older attempt',
      claim([session(), attempt({}, 1, { activityAttempt: 3 })], { activityAttempt: 2 }),
      false,
      /attempt 2 of turn 1 may not write: attempt 3/,
    ],
    ['a process that slept', claim([session(), user({})], { hasSlept: true }), false, /it slept/],
    ['a turn that is over', claim(beyond), false, /run-1 may not write turn 1: the conversation has reached turn 2/],
  ])('%s', async (_, given, newOwner, message) => {
    expect(await mayWrite(given, () => Promise.resolve(true))).toEqual({ newOwner });
    const stale = mayWrite(given, () => Promise.resolve(false));
    await expect(stale).rejects.toThrow(message);
    await expect(stale).rejects.toBeInstanceOf(StaleAttemptError);
  });

  it('once, however many doubts there are', async () => {
    let asked = 0;
    await mayWrite(claim([...beyond, attempt({}, 1, { activityAttempt: 9 }), handOver]), () => {
      asked += 1;
      return Promise.resolve(true);
    });
    expect(asked).toBe(1);
  });

  it('an unreachable server is no answer', async () => {
    await expect(mayWrite(claim([session(), handOver]), neverAsked)).rejects.toThrow('asked');
  });
});

it('the last one named owns the transcript', () => {
  expect(ownerOf([])).toBeUndefined();
  expect(ownerOf(toRecords([session(), handOver, event({ turn: 2 }, 'owner', {})]))).toBe('run-2');
});

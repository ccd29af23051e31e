import { expect, it } from 'vitest';
import type { AgentFiles } from '../../src/activities/agent-files.ts';
import { toReply } from '../../src/activities/reply-outcome.ts';
import { RecordList } from '../../src/store/record-list.ts';
import type { AssistantMessageRecord } from '../../src/store/records.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';
import { ROOT, reply, session, toRecords, user } from '../store/fixtures.ts';

/** What the workflow is told of turn 1, whose reply is the first of these records. */
function outcomeOf(asked: RecordDraft, ...later: RecordDraft[]) {
  const transcript = new RecordList();
  for (const record of toRecords([session(), asked, reply({}), ...later])) transcript.add(record);
  // Only the records are looked at.
  const files = { ref: { ...ROOT, epoch: 0, branch: '' }, transcript } as unknown as AgentFiles;
  return toReply(files, transcript.records[2] as AssistantMessageRecord);
}

it('a reply without calls is the end', () => {
  expect(outcomeOf(user({}))).toMatchObject({ next: 'end' });
  expect(outcomeOf(user({})).status).toBeUndefined();
});

it('promise 6: last words name their limit, which a history set back may not know of', () => {
  expect(outcomeOf({ ...user({}), last: 'timeout' } as RecordDraft)).toMatchObject({ next: 'end', status: 'timeout' });
  expect(outcomeOf({ ...user({}), last: 'repeated_call' } as RecordDraft)).toMatchObject({
    status: 'failed',
    error: 'repeated_call',
  });
});

it('a reply that a recorded message of a person follows is not the end', () => {
  expect(outcomeOf(user({}), { ...user({ turn: 2 }), steering: ['m1'] } as RecordDraft)).toMatchObject({
    next: 'continue',
  });
  expect(outcomeOf(user({}), user({ turn: 2 }))).toMatchObject({ next: 'end' });
});

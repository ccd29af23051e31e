import { expect, it } from 'vitest';
import { conversation, headOf } from '../../src/store/chain.ts';
import { branchOfRun, forkOf, recordOfTurn, splitAt } from '../../src/store/fork.ts';
import { endOf, metaFromRecords } from '../../src/store/meta.ts';
import { RecordList } from '../../src/store/record-list.ts';
import type { TranscriptRecord } from '../../src/store/records.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';
import { RUN_ID, end, event, reply, session, toRecords, user } from './fixtures.ts';

const turns = (from: number, to: number, branch = ''): RecordDraft[] =>
  Array.from({ length: to - from + 1 }, (_, i) => [
    user({ turn: from + i, branch }),
    reply({ turn: from + i, branch }),
  ]).flat();
const first = { epoch: 0, branch: '' };
const fork = (branch: string, keptTurn: number, parent: RecordDraft, note?: string): RecordDraft => ({
  ...event({ branch, turn: 0, parent: parent.id }, 'fork', { keptTurn, ...(note !== undefined && { note }) }),
});
const at = (branch: string, turn: number) => ({ agentId: RUN_ID, epoch: 0, branch, turn });
const idsOf = (records: readonly TranscriptRecord[]) => records.map(({ id }) => id);

function listOf(drafts: readonly RecordDraft[]): RecordList {
  const list = new RecordList();
  for (const record of toRecords(drafts)) list.add(record);
  return list;
}

it('a branch finds kept turns where it came from, later ones only in itself', () => {
  const list = listOf([session(), ...turns(1, 4), fork('b', 2, reply({ turn: 2 }), 'told'), ...turns(3, 3, 'b')]);
  expect(forkOf(list, at('b', 0))).toEqual({ keptTurn: 2, note: 'told', parent: reply({ turn: 2 }).id });
  expect(recordOfTurn(list, at('b', 2), 'reply')?.id).toBe(reply({ turn: 2 }).id);
  expect(recordOfTurn(list, at('b', 3), 'reply')?.id).toBe(reply({ turn: 3, branch: 'b' }).id);
  expect(recordOfTurn(list, at('b', 4), 'reply')).toBeUndefined();
  expect(recordOfTurn(list, at('', 4), 'reply')?.id).toBe(reply({ turn: 4 }).id);
});

it('a branch that is not begun has no turn at all: a reset asks anew', () => {
  expect(recordOfTurn(listOf([session(), ...turns(1, 2)]), at('b', 1), 'reply')).toBeUndefined();
});

it('the prompt is kept by every branch', () => {
  const list = listOf([session(), ...turns(1, 2), fork('b', 0, user({ turn: 1 }))]);
  expect(recordOfTurn(list, at('b', 1), 'user')?.id).toBe(user({ turn: 1 }).id);
  expect(recordOfTurn(list, at('b', 1), 'reply')).toBeUndefined();
});

it('a branch of a branch looks through both', () => {
  const b = [fork('b', 1, reply({ turn: 1 })), ...turns(2, 4, 'b')];
  const list = listOf([session(), ...turns(1, 4), ...b, fork('c', 3, reply({ turn: 3, branch: 'b' }))]);
  expect([1, 2, 3, 4].map((turn) => recordOfTurn(list, at('c', turn), 'reply')?.id)).toEqual([
    reply({ turn: 1 }).id,
    reply({ turn: 2, branch: 'b' }).id,
    reply({ turn: 3, branch: 'b' }).id,
    undefined,
  ]);
});

it('splits before the message of the first lost turn, whatever the end was', () => {
  const records = toRecords([session(), ...turns(1, 3), end()]);
  const split = splitAt(records, first, 2);
  expect(split.kept.at(-1)?.id).toBe(reply({ turn: 2 }).id);
  expect(idsOf(split.lostReplies)).toEqual([reply({ turn: 3 }).id]);
  expect(splitAt(records, first, 3).kept.at(-1)?.id).toBe(reply({ turn: 3 }).id);
  expect(splitAt(records, first, 0).kept.at(-1)?.id).toBe(user({ turn: 1 }).id);
});

it('of an older branch, the newer one is lost with the rest', () => {
  const b = [fork('b', 1, reply({ turn: 1 })), ...turns(2, 2, 'b')];
  const { lostReplies } = splitAt(toRecords([session(), ...turns(1, 3), ...b]), first, 2);
  expect(idsOf(lostReplies)).toEqual([reply({ turn: 3 }).id, reply({ turn: 2, branch: 'b' }).id]);
});

it('a run is known by what it wrote', () => {
  const owner = event({ branch: 'b', turn: 2 }, 'owner', { workflowRunId: 'run-2' });
  const records = toRecords([session(), ...turns(1, 1), fork('b', 1, reply({ turn: 1 })), owner]);
  expect(branchOfRun(records, 'run-1')).toMatchObject(first);
  expect(branchOfRun(records, 'run-2')).toMatchObject({ epoch: 0, branch: 'b' });
  expect(branchOfRun(records, 'run-3')).toBeUndefined();
});

it('an agent that was reset after its end runs again', () => {
  const records = toRecords([session(), ...turns(1, 3), end(), fork('b', 1, reply({ turn: 1 })), ...turns(2, 2, 'b')]);
  expect(endOf(records)).toBeUndefined();
  expect(metaFromRecords(records)).toMatchObject({ status: 'running', turns: 2, endedAt: null });
});

it('an older branch whose run is the owner again is the one that readers see', () => {
  const b = [fork('b', 1, reply({ turn: 1 })), ...turns(2, 2, 'b')];
  const back = event({ turn: 3 }, 'owner', { workflowRunId: 'run-1' });
  const records = toRecords([session(), ...turns(1, 3), ...b, back]);
  expect(headOf(records)?.id).toBe(back.id);
  expect(idsOf(conversation(records))).toEqual(idsOf(toRecords([session(), ...turns(1, 3), back])));
  expect(conversation(records, { epoch: 0, branch: 'b' }).at(-1)?.id).toBe(reply({ turn: 2, branch: 'b' }).id);
});

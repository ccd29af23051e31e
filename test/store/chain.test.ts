import fc from 'fast-check';
import { expect, it } from 'vitest';
import { conversation, epochOf, headOf } from '../../src/store/chain.ts';
import { attempt, end, event, idOf, reply, session, toRecords, usage, user } from './fixtures.ts';
import { OWNER_EVENT } from '../../src/store/records.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';

const turns = (from: number, to: number, branch = ''): RecordDraft[] =>
  Array.from({ length: to - from + 1 }, (_, i) => [
    user({ turn: from + i, branch }),
    reply({ turn: from + i, branch }),
  ]).flat();
const idsOf = (drafts: readonly RecordDraft[]) => conversation(toRecords(drafts)).map((record) => record.id);
const ids = (drafts: readonly RecordDraft[]) => drafts.map((draft) => draft.id);

it('is the chain of an ordinary transcript, without its leaves', () => {
  const drafts = [session(), user({}), attempt({}, 1), usage({}, 1), reply({}), end()];
  expect(idsOf(drafts)).toEqual(ids([session(), user({}), reply({}), end()]));
  expect(conversation([])).toEqual([]);
});

it('a fork follows an older record and leaves out what came after it', () => {
  const fork = [user({ turn: 2, branch: 'b', parent: reply({ turn: 1 }).id }), reply({ turn: 2, branch: 'b' })];
  expect(idsOf([session(), ...turns(1, 3), ...fork])).toEqual(ids([session(), ...turns(1, 1), ...fork]));
});

it('late records of the branch that was left move nothing', () => {
  const fork = [user({ turn: 2, branch: 'b', parent: reply({ turn: 1 }).id })];
  const late = [event({ turn: 3 }, 'late'), usage({ turn: 3 }, 1), reply({ turn: 3 })];
  const drafts = [session(), ...turns(1, 2), ...fork, ...late, reply({ turn: 2, branch: 'b' })];
  expect(idsOf(drafts)).toEqual(ids([session(), ...turns(1, 1), ...fork, reply({ turn: 2, branch: 'b' })]));
  expect(headOf(toRecords([...drafts, ...turns(4, 4)]))?.id).toBe(reply({ turn: 2, branch: 'b' }).id);
});

it('a fork of a fork keeps the right part of each', () => {
  const b = [user({ turn: 2, branch: 'b', parent: reply({ turn: 1 }).id }), ...turns(3, 4, 'b')];
  const c = [user({ turn: 3, branch: 'c', parent: b[0]?.id ?? '' }), reply({ turn: 3, branch: 'c' })];
  expect(idsOf([session(), ...turns(1, 3), ...b, ...c])).toEqual(
    ids([session(), ...turns(1, 1), ...b.slice(0, 1), ...c]),
  );
});

it('an epoch goes on where the one before ended', () => {
  const next = [session({ epoch: 1 }), user({ turn: 2, epoch: 1 })];
  const drafts = [session(), ...turns(1, 1), end(), ...next];
  expect(idsOf(drafts)).toEqual(ids(drafts));
  expect(epochOf(headOf(toRecords(drafts))?.id ?? '')).toBe(1);
});

it('loses no record when two writers followed the same tip', () => {
  const [a, b] = [event({ turn: 1, parent: user({}).id }, 'a'), reply({ parent: user({}).id })];
  expect(idsOf([session(), user({}), a, b, end()])).toEqual(ids([session(), user({}), a, b, end()]));
});

it('starts at a leaf’s own parent, and survives a lost one', () => {
  const viaLeaf = user({ turn: 2, branch: 'b', parent: usage({}, 1).id });
  expect(idsOf([session(), user({}), usage({}, 1), reply({}), viaLeaf])).toEqual(
    ids([session(), reply({}), viaLeaf])
      .filter((id) => id !== reply({}).id)
      .toSpliced(1, 0, user({}).id),
  );
  const lost = user({ turn: 2, epoch: 1, parent: 'nowhere' });
  expect(idsOf([session(), ...turns(1, 1), lost])).toEqual(ids([session(), ...turns(1, 1), lost]));
});

it('ends on every input, damaged ones included', () => {
  const anyId = fc.constantFrom('a', 'b', idOf({}, 'x'), idOf({ branch: 'b' }, 'x'), idOf({ epoch: 1 }, 'x'));
  const anyDraft = fc.record({ id: anyId, parent: fc.option(anyId), branch: fc.constantFrom('', 'b', 'c') });
  fc.assert(
    fc.property(fc.uniqueArray(anyDraft, { maxLength: 12, selector: (draft) => draft.id }), (drafts) => {
      const records = toRecords(drafts.map(({ id, parent }) => ({ ...event({}, 'x'), id, parent })));
      const found = conversation(records);
      expect(new Set(found).size).toBe(found.length);
      expect(found.at(-1)).toBe(headOf(records));
    }),
  );
});

it('leaves anywhere change nothing', () => {
  const drafts = [session(), ...turns(1, 3), end()];
  fc.assert(
    fc.property(fc.array(fc.nat(drafts.length)), (places) => {
      const withLeaves = places.reduce<RecordDraft[]>(
        (list, place, i) => list.toSpliced(place, 0, i % 2 === 0 ? usage({ turn: i }, 1) : attempt({ turn: i }, 1)),
        drafts,
      );
      expect(idsOf(withLeaves)).toEqual(ids(drafts));
    }),
  );
});

it('of a list that grows is what it would be of a fresh one', () => {
  const draft = fc.oneof(
    fc.record({ turn: fc.nat(4), branch: fc.constantFrom('', 'b'), epoch: fc.nat(1) }).map((where) => user(where)),
    fc.record({ turn: fc.nat(4), branch: fc.constantFrom('', 'b') }).map((where) => reply(where)),
    fc.record({ turn: fc.nat(4) }).map((where) => usage(where, 1)),
    fc.record({ turn: fc.nat(4), branch: fc.constantFrom('', 'b') }).map((where) => event(where, OWNER_EVENT, {})),
  );
  const branches = [undefined, { epoch: 0, branch: '' }, { epoch: 0, branch: 'b' }, { epoch: 1, branch: '' }];
  fc.assert(
    fc.property(fc.uniqueArray(draft, { selector: ({ id }) => id }), (drafts) => {
      const records = toRecords(drafts);
      const growing: typeof records = [];
      for (const record of records) {
        growing.push(record);
        for (const of of branches) expect(conversation(growing, of)).toEqual(conversation([...growing], of));
      }
    }),
  );
});

it('of a list that was filled anew is made anew', () => {
  const records = toRecords([session(), ...turns(1, 2)]);
  expect(conversation(records)).toHaveLength(5);
  records.splice(0, records.length, ...toRecords([session(), ...turns(1, 1), ...turns(7, 9)]));
  expect(conversation(records)).toEqual(conversation([...records]));
});

import { appendFile, copyFile, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTranscript } from '../../src/store/read.ts';
import { openTranscript } from '../../src/store/transcript.ts';
import { CHILD_ID, RUN_ID, end, event, freshFolder, idOf, reply, session, toText, usage, user } from './fixtures.ts';

const ids = (records: readonly { id: string }[]) => records.map((record) => record.id);

describe('append', () => {
  it('stores a record once; the one that is there answers the second time', async () => {
    const transcript = await openTranscript(join(freshFolder(), 'deep/er/t.jsonl'), { create: true });
    const first = await transcript.append(reply({}, 'first'));
    const second = await transcript.append(reply({}, 'second'));
    expect(first.isNew).toBe(true);
    expect(second).toEqual({ record: first.record, isNew: false });
    expect((await readTranscript(transcript.file)).records).toEqual([first.record]);
  });

  it('makes each record follow the tip, and leaves hanging off it do not move it', async () => {
    const transcript = await openTranscript(join(freshFolder(), 't.jsonl'), { create: true });
    await transcript.appendAll([session(), user({}), usage({}, 1), reply({})]);
    expect(transcript.records.map((record) => record.parent)).toEqual([null, session().id, user({}).id, user({}).id]);
    expect(transcript.tip).toBe(reply({}).id);
    await transcript.append(usage({}, 2));
    expect(transcript.tip).toBe(reply({}).id);
    await transcript.append(event({ turn: 1, parent: 'elsewhere' }, 'note'));
    expect(transcript.get(event({ turn: 1 }, 'note').id)?.parent).toBe('elsewhere');
  });

  it('answers each draft of a batch, new or not, in order', async () => {
    const transcript = await openTranscript(join(freshFolder(), 't.jsonl'), { create: true });
    await transcript.append(user({}));
    const answers = await transcript.appendAll([session(), user({}), reply({})]);
    expect(answers.map(({ record, isNew }) => [record.id, isNew])).toEqual([
      [session().id, true],
      [user({}).id, false],
      [reply({}).id, true],
    ]);
  });

  it('sees what another instance wrote before it writes itself', async () => {
    const file = join(freshFolder(), 't.jsonl');
    const one = await openTranscript(file, { create: true });
    const other = await openTranscript(file);
    await one.append(user({}, 'mine'));
    expect((await other.append(user({}, 'yours'))).isNew).toBe(false);
    expect(other.records).toEqual(one.records);
  });

  it('keeps calls of one instance apart that are made at the same time', async () => {
    const transcript = await openTranscript(join(freshFolder(), 't.jsonl'), { create: true });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => transcript.append(event({ turn: i % 25 }, 'note'))),
    );
    expect(answers.filter((answer) => answer.isNew)).toHaveLength(25);
    const parents = transcript.records.map((record) => record.parent);
    expect(parents).toEqual([null, ...ids(transcript.records).slice(0, -1)]);
  });

  it('goes on after a failure', async () => {
    const file = join(freshFolder(), 't.jsonl');
    const transcript = await openTranscript(file, { create: true });
    await rename(file, `${file}.away`);
    await expect(transcript.append(user({}))).rejects.toThrow(/ENOENT.*t\.jsonl/);
    await rename(`${file}.away`, file);
    expect((await transcript.append(user({}))).isNew).toBe(true);
  });

  it('refuses a record that no reader would take', async () => {
    const transcript = await openTranscript(join(freshFolder(), 't.jsonl'), { create: true });
    await expect(transcript.append(user({}, 'x'.repeat(65 * 1024 * 1024)))).rejects.toThrow(/at most 67108864/);
    expect((await stat(transcript.file)).size).toBe(0);
  });

  it('a missing file is an error that names it, unless it is to be made', async () => {
    await expect(openTranscript(join(freshFolder(), 'none.jsonl'))).rejects.toThrow(/none\.jsonl/);
  });
});

describe('torn tail', () => {
  it(
    'cut at every byte of its last record, a transcript keeps its whole records and takes new ones',
    { timeout: 30_000 },
    async () => {
      const folder = freshFolder();
      const whole = join(folder, 'whole.jsonl');
      await writeFile(whole, toText([session(), user({}), reply({})]));
      const before = toText([session(), user({})]).length;
      const size = (await stat(whole)).size;
      for (let cut = before; cut <= size; cut += 1) {
        const file = join(folder, 'cut.jsonl');
        await copyFile(whole, file);
        await truncate(file, cut);
        const transcript = await openTranscript(file);
        const again = await transcript.append(reply({}, 'again'));
        await transcript.append(end());
        const read = await readTranscript(file);
        expect(ids(read.records)).toEqual(ids([session(), user({}), reply({}), end()]));
        expect(read.records).toEqual(transcript.records);
        // The reply counts as there when all of it but the newline was written: it must not be paid twice.
        expect(again.isNew).toBe(cut < size - 1);
        expect(read.skipped.lines).toBe(cut > before && cut < size - 1 ? 1 : 0);
      }
    },
  );

  it('a record without its newline counts, and is forgotten when another line fuses with it', async () => {
    const file = join(freshFolder(), 't.jsonl');
    await writeFile(file, toText([session(), user({})]).trimEnd());
    const transcript = await openTranscript(file);
    expect(ids(transcript.records)).toEqual(ids([session(), user({})]));
    await appendFile(file, toText([reply({})]));
    await transcript.refresh();
    expect(transcript.records).toEqual((await readTranscript(file)).records);
    expect(ids(transcript.records)).toEqual([session().id]);
  });

  it('says how many bytes at the end are not a record', async () => {
    const file = join(freshFolder(), 't.jsonl');
    await writeFile(file, `${toText([session()])}{"v":1,"id`);
    expect(await readTranscript(file)).toMatchObject({ tornBytes: 10, skipped: { lines: 0 } });
  });
});

describe('reading', () => {
  it('passes bad lines in the middle, counts them and keeps the rest', async () => {
    const file = join(freshFolder(), 't.jsonl');
    const bad = [
      '{"v":1',
      'null',
      '[]',
      '\0\0\0',
      '{"type":"message"}',
      '{"v":1,"id":"x","parent":null,"at":"","type":"message"}',
    ];
    await writeFile(file, `${toText([session()])}${bad.join('\n')}\n\n\r\n${toText([user({})])}`);
    // A record but for one byte that is not UTF-8: read on, it would come out as something else.
    const notUtf8 = Buffer.from(toText([event({}, 'note', { text: '@' })]));
    notUtf8[notUtf8.indexOf('@')] = 0xff;
    await appendFile(file, notUtf8);
    await appendFile(file, toText([reply({})]));
    const { records, skipped, meta } = await readTranscript(file);
    expect(ids(records)).toEqual(ids([session(), user({}), reply({})]));
    expect(skipped).toEqual({ lines: bad.length + 2, bytes: bad.join('').length + 1 + notUtf8.length - 1, newer: 0 });
    expect(meta?.runId).toBe(RUN_ID);
    const transcript = await openTranscript(file);
    expect([transcript.records, transcript.skipped]).toEqual([records, skipped]);
  });

  it('keeps unknown types and newer versions, counts them, and does not hang the conversation on them', async () => {
    const file = join(freshFolder(), 't.jsonl');
    const unknown = { v: 1, type: 'hologram', id: 'r:0::1:hologram', parent: null, at: 'now', shape: [1, 2] };
    const newer = {
      v: 2,
      type: 'event',
      id: 'r:0::1:later',
      parent: null,
      at: 'now',
      turn: 1,
      name: 'later',
      data: {},
    };
    await writeFile(file, `${JSON.stringify(newer)}\n${JSON.stringify(unknown)}\n`);
    const transcript = await openTranscript(file);
    expect(transcript.records).toEqual([newer, unknown]);
    expect(transcript.skipped).toEqual({ lines: 0, bytes: 0, newer: 2 });
    expect(transcript.tip).toBe(newer.id);
  });

  it('reads a line of 50 MB, and passes over one that is too long for memory', { timeout: 30_000 }, async () => {
    const file = join(freshFolder(), 't.jsonl');
    const transcript = await openTranscript(file, { create: true });
    await transcript.append(user({}, 'x'.repeat(50 * 1024 * 1024)));
    await appendFile(file, Buffer.concat([Buffer.alloc(70 * 1024 * 1024, 'y'), Buffer.from('\n')]));
    await transcript.append(reply({}));
    const read = await readTranscript(file);
    expect(ids(read.records)).toEqual(ids([user({}), reply({})]));
    expect(read.skipped).toEqual({ lines: 1, bytes: 70 * 1024 * 1024, newer: 0 });
    expect(transcript.skipped).toEqual(read.skipped);
  });

  it.each([
    ['cut', (file: string) => truncate(file, toText([session()]).length), [session()]],
    [
      'replaced by another file',
      (file: string) => replace(file, toText([session(), event({}, 'other')])),
      [session(), event({}, 'other')],
    ],
    [
      'rewritten in place and longer',
      (file: string) => writeFile(file, toText([session(), user({}, 'x'.repeat(2000)), end()])),
      [session(), user({}, 'x'.repeat(2000)), end()],
    ],
  ])('reads a file anew that was %s', async (_, change, expected) => {
    const file = join(freshFolder(), 't.jsonl');
    await writeFile(file, toText([session(), user({}), reply({})]));
    const transcript = await openTranscript(file);
    const live = transcript.records;
    await change(file);
    await transcript.refresh();
    expect(ids(live)).toEqual(ids(expected));
    expect(transcript.get(user({}).id) !== undefined).toBe(ids(expected).includes(user({}).id));
  });

  it.each([
    ['emptied', (file: string) => truncate(file, 0), /was emptied/],
    ['of another agent', (file: string) => writeFile(file, toText([session({ agentId: CHILD_ID })])), /was replaced/],
  ])('promise 1: writes nothing into a file that is %s now', async (_, change, message) => {
    const file = join(freshFolder(), 't.jsonl');
    await writeFile(file, toText([session(), user({})]));
    const transcript = await openTranscript(file);
    await change(file);
    const before = await readFile(file);
    await expect(transcript.append(reply({}))).rejects.toThrow(message);
    await expect(transcript.refresh()).rejects.toThrow(message);
    await expect(transcript.append(reply({}))).rejects.toThrow(message);
    expect(await readFile(file)).toEqual(before);
  });

  it('agrees over all readers whatever lies between the records', { timeout: 30_000 }, async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), who: fc.nat(1), turn: fc.nat(5) }),
      fc.record({
        kind: fc.constant('raw' as const),
        text: fc.constantFrom('{"v":1', '\n', 'x\n', '\0', toText([user({})]), toText([reply({})]).trimEnd()),
      }),
      fc.record({ kind: fc.constant('refresh' as const), who: fc.nat(1) }),
    );
    const file = join(freshFolder(), 't.jsonl');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        await writeFile(file, '');
        const writers = [await openTranscript(file), await openTranscript(file)] as const;
        const acknowledged: string[] = [];
        for (const each of steps) {
          if (each.kind === 'raw') await appendFile(file, each.text);
          if (each.kind === 'refresh') await writers[each.who === 0 ? 0 : 1].refresh();
          if (each.kind === 'append')
            acknowledged.push(
              (await writers[each.who === 0 ? 0 : 1].append(event({ turn: each.turn }, 'e'))).record.id,
            );
        }
        const fresh = await openTranscript(file);
        for (const writer of writers) {
          await writer.refresh();
          expect(writer.records).toEqual(fresh.records);
        }
        expect((await readTranscript(file)).records).toEqual(fresh.records);
        expect(new Set(ids(fresh.records)).size).toBe(fresh.records.length);
        for (const id of acknowledged) expect(fresh.get(id)).toBeDefined();
      }),
      { numRuns: 60 },
    );
  });
});

describe('sync', () => {
  it('costs nothing when there is nothing to put on disk', async () => {
    const file = join(freshFolder(), 't.jsonl');
    const transcript = await openTranscript(file, { create: true });
    await transcript.append(user({}));
    await transcript.sync();
    // Without work to do the file is not even opened.
    await rename(file, `${file}.away`);
    await transcript.sync();
    await rename(`${file}.away`, file);
    await appendFile(file, toText([reply({})]));
    await transcript.refresh();
    await rename(file, `${file}.away`);
    await expect(transcript.sync()).rejects.toThrow(/ENOENT/);
  });
});

it('writes one line a record, readable by anything that reads JSON lines', async () => {
  const transcript = await openTranscript(join(freshFolder(), 't.jsonl'), { create: true });
  await transcript.append(user({}, 'line\nbreak \u2028 and \ud800 half'));
  const text = await readFile(transcript.file, 'utf8');
  expect(text.match(/\n/g)).toHaveLength(1);
  expect(JSON.parse(text)).toMatchObject({ v: 1, type: 'message', id: idOf({ turn: 1 }, 'user'), parent: null });
});

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

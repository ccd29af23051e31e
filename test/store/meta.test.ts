import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { metaFile, transcriptFile } from '../../src/store/layout.ts';
import { loadMeta, metaFromRecords, readMeta, writeMeta } from '../../src/store/meta.ts';
import {
  CHILD,
  CHILD_ID,
  ROOT,
  RUN_ID,
  end,
  freshFolder,
  meta,
  putFile,
  reply,
  session,
  toRecords,
  toText,
  tokens,
  usage,
  user,
} from './fixtures.ts';

const whole = [
  session({ agentId: CHILD_ID }),
  user({ agentId: CHILD_ID }),
  usage({ agentId: CHILD_ID }, 1),
  end({ agentId: CHILD_ID }),
];

describe('meta from records', () => {
  it('has the names and links of the first record and the outcome of the last', () => {
    expect(metaFromRecords(toRecords(whole))).toEqual(
      meta({
        agentId: CHILD_ID,
        parentAgentId: RUN_ID,
        callId: 't1.0',
        workflowId: `${RUN_ID}/${CHILD_ID}`,
        depth: 1,
        error: 'because',
      }),
    );
  });

  it('is of a running agent while there is no terminal record', () => {
    expect(metaFromRecords(toRecords([session(), user({ turn: 3 }), reply({ turn: 3 })]))).toMatchObject({
      status: 'running',
      endedAt: null,
      turns: 3,
      error: null,
    });
  });

  it('runs again once it was continued, and ends again', () => {
    const again = [session(), end({ status: 'failed' }), user({ epoch: 1, turn: 2 })];
    expect(metaFromRecords(toRecords(again)).status).toBe('running');
    expect(metaFromRecords(toRecords([...again, end({ epoch: 1 })])).status).toBe('completed');
  });

  it('counts usage that came after the end', () => {
    const late = metaFromRecords(toRecords([...whole, usage({ agentId: CHILD_ID }, 2, { usage: tokens(1, 1) })]));
    expect(late.usage.own).toEqual({ ...tokens(101, 11), requests: 2 });
  });

  it('needs a session_meta', () => {
    expect(() => metaFromRecords([])).toThrow('no session_meta');
  });
});

describe('meta file', () => {
  it('comes back as it was written', async () => {
    const home = freshFolder();
    await writeMeta(home, ROOT, meta());
    expect(await readMeta(home, ROOT)).toEqual(meta());
    expect((await readFile(metaFile(home, ROOT))).length).toBeLessThan(1200);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['torn', JSON.stringify(meta()).slice(0, 99)],
    ['not of an agent', '{"name":"package"}'],
    ["another agent's", JSON.stringify(meta())],
    ['of an unknown status', JSON.stringify(meta({ agentId: CHILD_ID, status: 'odd' as 'lost' }))],
    ['without counts', JSON.stringify({ ...meta({ agentId: CHILD_ID }), usage: {} })],
  ])('is made again from the transcript when it is %s', async (_, content) => {
    const home = freshFolder();
    await putFile(transcriptFile(home, CHILD), toText(whole));
    if (content !== undefined) await putFile(metaFile(home, CHILD), content);
    await expect(readMeta(home, CHILD)).rejects.toThrow();
    expect(await loadMeta(home, CHILD)).toEqual(metaFromRecords(toRecords(whole)));
    await expect(readMeta(home, CHILD), 'a reader writes nothing').rejects.toThrow();
    await loadMeta(home, CHILD, { repair: true });
    expect(await readMeta(home, CHILD)).toEqual(metaFromRecords(toRecords(whole)));
  });

  it('is refused when the transcript is of somebody else, too', async () => {
    const home = freshFolder();
    await putFile(transcriptFile(home, CHILD), toText([session()]));
    await expect(loadMeta(home, CHILD, { repair: true })).rejects.toThrow(`is of agent ${RUN_ID} of run ${RUN_ID}`);
    expect(existsSync(metaFile(home, CHILD))).toBe(false);
  });
});

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, symlink, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  metaFile,
  newTranscriptStem,
  rootTranscriptFile,
  subagentsFolder,
  transcriptFile,
  transcriptsRoot,
} from '../../src/store/layout.ts';
import { agentTree, listAgents, listRuns } from '../../src/store/listing.ts';
import type { AgentNode } from '../../src/store/listing.ts';
import { writeMeta } from '../../src/store/meta.ts';
import { loadSubtreeUsage } from '../../src/store/subtree-usage.ts';
import {
  CHILD,
  CHILD_ID,
  ROOT,
  RUN_ID,
  STEM,
  bundleScript,
  end,
  freshFolder,
  meta,
  putFile,
  run,
  session,
  toText,
  tokens,
  usage,
  user,
  writeRun,
} from './fixtures.ts';

const day = (n: number) => new Date(`2026-11-${String(n).padStart(2, '0')}T10:00:00.000Z`);

describe('listRuns', () => {
  it('is empty for a home without transcripts', async () => {
    expect(await listRuns(freshFolder())).toEqual({ runs: [], problems: [] });
  });

  it('gives the newest first, as many as were asked for', async () => {
    const home = freshFolder();
    for (const n of [3, 20, 11]) await writeRun(home, `run-${n}`, day(n));
    await writeRun(home, 'run-old', new Date('2025-12-31T23:59:59.000Z'));
    await writeRun(home, 'run-late', new Date('2026-11-11T10:00:00.001Z'));
    const ids = async (limit?: number) =>
      (await listRuns(home, limit === undefined ? {} : { limit })).runs.map((found) => found.runId);
    expect(await ids()).toEqual(['run-20', 'run-late', 'run-11', 'run-3', 'run-old']);
    expect(await ids(2)).toEqual(['run-20', 'run-late']);
    expect(await ids(0)).toEqual([]);
  });

  it('takes the meta file, else what the transcript says', async () => {
    const home = freshFolder();
    await putFile(rootTranscriptFile(home, STEM), toText([session(), user({}), usage({}, 1), end()]));
    const rebuilt = await listRuns(home);
    expect(rebuilt.runs[0]?.meta).toEqual(meta({ error: 'because' }));
    await writeMeta(home, ROOT, meta({ turns: 7 }));
    expect((await listRuns(home)).runs[0]?.meta.turns).toBe(7);
  });

  it('reads only the ends of a long transcript without a meta file', async () => {
    const home = freshFolder();
    const file = rootTranscriptFile(home, STEM);
    await putFile(file, toText([session(), user({}, 'x'.repeat(5_000_000)), end()]));
    expect((await listRuns(home)).runs).toMatchObject([
      { runId: RUN_ID, isPartial: true, meta: { status: 'completed' } },
    ]);
  });

  it('one bad file hides nothing and is shown with a reason', { timeout: 30_000 }, async () => {
    const home = freshFolder();
    const stemOf = (runId: string) => newTranscriptStem(runId, day(10));
    const file = (runId: string) => rootTranscriptFile(home, stemOf(runId));
    await writeRun(home, 'good-before', day(9));
    await writeRun(home, 'good-same-day', day(10));
    await writeRun(home, 'good-after', day(11));
    await writeFile(file('empty'), '');
    await mkdir(file('folder'));
    await symlink('/nowhere/at/all', file('broken-link'));
    execFileSync('mkfifo', [file('fifo')]);
    await writeFile(file('huge'), '');
    await truncate(file('huge'), 2 * 1024 ** 3);
    await writeFile(file('foreign'), '{"name":"package","version":"1.0.0"}\n');
    await writeFile(file('text'), 'hello\n');
    await writeFile(file('moved'), toText([session()]));
    await writeFile(join(dirname(file('empty')), 'with\nnewline.jsonl'), '{}\n');
    await writeFile(join(dirname(file('empty')), 'notes.txt'), 'not looked at');
    await writeFile(file('unreadable'), toText([session()]));
    await chmod(file('unreadable'), 0);
    await mkdir(join(transcriptsRoot(home), '2026/12/01'), { recursive: true });
    await chmod(join(transcriptsRoot(home), '2026/12/01'), 0);
    const { runs, problems } = await listAsNobody(home);
    expect(runs).toEqual(['good-after', 'good-same-day', 'good-before']);
    expect(
      new Map(problems.map(({ file: name, reason }) => [name.replace(/^.*Z-|^.*\/(?=with|2026)/, ''), reason])),
    ).toEqual(
      new Map([
        ['empty.jsonl', 'the file is empty'],
        ['folder.jsonl', 'it is a folder'],
        ['broken-link.jsonl', 'it is not a regular file'],
        ['fifo.jsonl', 'it is not a regular file'],
        ['huge.jsonl', 'the first line is longer than 1048576 bytes'],
        ['foreign.jsonl', 'the first record is not session_meta'],
        ['text.jsonl', 'the first line is not JSON'],
        ['moved.jsonl', `the transcript is of agent ${RUN_ID} of run ${RUN_ID}`],
        ['with\\nnewline.jsonl', expect.stringContaining('not a transcript stem')],
        ['unreadable.jsonl', expect.stringContaining('EACCES')],
        ['2026/12/01', expect.stringContaining('EACCES')],
      ]),
    );
  });

  it('does not look at descendants: 1,000 of them, unreadable or not, cost nothing', { timeout: 20_000 }, async () => {
    const home = freshFolder();
    await writeRun(home, RUN_ID, new Date('2026-11-30T17:49:36.000Z'));
    await mkdir(subagentsFolder(home, STEM), { recursive: true });
    for (let i = 0; i < 1000; i += 1)
      await symlink('/nowhere', join(subagentsFolder(home, STEM), `agent-${childId(i)}.jsonl`));
    const { runs, problems } = await listRuns(home);
    expect([runs.length, problems]).toEqual([1, []]);
  });

  it('opens no transcript of hundreds of runs that have a meta.json', { timeout: 20_000 }, async () => {
    const home = freshFolder();
    for (let i = 0; i < 300; i += 1) {
      const runId = `run-${i}`;
      const stem = newTranscriptStem(runId, new Date(day(1 + (i % 28)).getTime() + i));
      await putFile(rootTranscriptFile(home, stem), 'not looked at');
      await putFile(
        metaFile(home, { runId, agentId: runId, transcript: stem }),
        JSON.stringify(meta({ runId, agentId: runId })),
      );
    }
    expect((await listRuns(home)).runs).toHaveLength(300);
  });
});

describe('listAgents', () => {
  it('lists the root and its descendants, from whichever file is whole', async () => {
    const home = freshFolder();
    await putFile(rootTranscriptFile(home, STEM), toText([session()]));
    await writeMeta(home, CHILD, meta({ agentId: CHILD_ID, parentAgentId: RUN_ID, depth: 1 }));
    const second = { ...ROOT, agentId: childId(2) };
    await putFile(transcriptFile(home, second), toText([session({ agentId: second.agentId })]));
    await putFile(transcriptFile(home, { ...ROOT, agentId: childId(3) }), 'garbage');
    await putFile(join(subagentsFolder(home, STEM), 'notes.txt'), '');
    const { agents, problems } = await listAgents(home, STEM);
    expect(agents.map((agent) => agent.agentId)).toEqual([RUN_ID, ...[CHILD_ID, second.agentId].sort()]);
    expect(problems).toMatchObject([
      { file: expect.stringContaining(childId(3)), reason: expect.stringContaining('no session_meta') },
    ]);
  });

  it('is refused for what is not a run', async () => {
    await expect(listAgents(freshFolder(), '../..')).rejects.toThrow(/not a transcript stem/);
  });
});

describe('agentTree', () => {
  const agent = (agentId: string, parentAgentId: string | null) => meta({ agentId, parentAgentId });
  const shape = (nodes: readonly AgentNode[]): unknown => nodes.map((node) => [node.agentId, shape(node.agents)]);

  it('nests agents under their parents, in the order given', () => {
    const tree = agentTree([agent('root', null), agent('b', 'root'), agent('a', 'root'), agent('a1', 'a')]);
    expect(shape(tree)).toEqual([
      [
        'root',
        [
          ['b', []],
          ['a', [['a1', []]]],
        ],
      ],
    ]);
  });

  it('hides nobody: neither an orphan nor agents that name each other', () => {
    expect(shape(agentTree([agent('root', null), agent('orphan', 'gone'), agent('x', 'y'), agent('y', 'x')]))).toEqual([
      ['root', []],
      ['orphan', []],
      ['x', [['y', []]]],
    ]);
  });
});

describe('loadSubtreeUsage', () => {
  it('reads the transcripts of agents that have not ended, and leaves siblings out', async () => {
    const home = freshFolder();
    const [grandchild, sibling] = [
      { ...ROOT, agentId: childId(4) },
      { ...ROOT, agentId: childId(5) },
    ];
    await putFile(rootTranscriptFile(home, STEM), toText([session(), usage({}, 1, { usage: tokens(1, 0) })]));
    await putFile(
      transcriptFile(home, CHILD),
      toText([session({ agentId: CHILD_ID }), usage({ agentId: CHILD_ID }, 1, { usage: tokens(10, 0) })]),
    );
    // Written at the start and never again: its worker died.
    await writeMeta(
      home,
      CHILD,
      meta({
        agentId: CHILD_ID,
        parentAgentId: RUN_ID,
        status: 'running',
        endedAt: null,
        usage: { own: tokens(0, 0), subtree: tokens(0, 0) },
      }),
    );
    await writeMeta(
      home,
      grandchild,
      meta({
        agentId: grandchild.agentId,
        parentAgentId: CHILD_ID,
        usage: { own: tokens(100, 0), subtree: tokens(100, 0) },
      }),
    );
    await writeMeta(
      home,
      sibling,
      meta({
        agentId: sibling.agentId,
        parentAgentId: RUN_ID,
        usage: { own: tokens(1000, 0), subtree: tokens(1000, 0) },
      }),
    );
    // Killed before its first record: it never sent anything.
    await putFile(transcriptFile(home, { ...ROOT, agentId: childId(6) }), '');
    expect((await loadSubtreeUsage(home, CHILD)).inputTokens).toBe(110);
    expect((await loadSubtreeUsage(home, ROOT)).inputTokens).toBe(1111);
  });
});

function childId(i: number): string {
  return createHash('sha256').update(String(i)).digest('hex').slice(0, 12);
}

/** Root may read everything, so the list is made by a process that may not. */
async function listAsNobody(home: string): Promise<{ runs: string[]; problems: { file: string; reason: string }[] }> {
  const script = await bundleScript('list-runs', home);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) execFileSync('chown', ['-R', '-h', '65534:65534', home]);
  const { stdout } = await run(process.execPath, [script, home], isRoot ? { uid: 65534, gid: 65534 } : {});
  const { runs, problems } = JSON.parse(stdout) as Awaited<ReturnType<typeof listRuns>>;
  return { runs: runs.map((found) => found.runId), problems };
}

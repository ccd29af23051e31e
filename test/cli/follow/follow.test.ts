import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunEnding } from '../../../src/client.ts';
import type { FollowEvent } from '../../../src/cli/follow/events.ts';
import { followRun, SeenRun, type RunWatch } from '../../../src/cli/follow/follow.ts';
import { createJsonView, createLineView } from '../../../src/cli/follow/line-view.ts';
import { LiveTree } from '../../../src/cli/follow/tree-view.ts';
import { TranscriptTail } from '../../../src/cli/follow/tail.ts';
import { CANCELLED_JOB } from '../../../src/jobs/job-result.ts';
import { CANCELLED_CHILD } from '../../../src/model/last-text.ts';
import { displayWidth } from '../../../src/cli/text.ts';
import { createTestIo } from '../fake-io.ts';
import { RecordedRun } from '../recorded-run.ts';

const CHILD = 'aaaaaaaaaaaa';
let home: string;
let run: RecordedRun;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'errand-follow-'));
  run = new RecordedRun(home, 'job-abc123');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function call(callId: string, name: string, summary: string, more: Record<string, unknown> = {}) {
  return { callId, name, kind: 'read', summary, toolUseId: `toolu_${callId}`, ...more };
}

function recordWholeRun(): void {
  run.start();
  run.reply(1, 'I look around.', [
    call('t1.0', 'read', 'read src/a.ts'),
    call('t1.1', 'task', 'task find the cause', { kind: 'task' }),
  ]);
  run.start({}, CHILD);
  run.reply(1, 'Looking.', [call('t1.0', 'grep', 'grep cause')], CHILD);
  run.reply(2, 'It is line 3.', [], CHILD);
  run.end('completed', 2, {}, CHILD);
  run.seal(
    2,
    [
      { callId: 't1.0', text: 'no such file', isError: true },
      { callId: 't1.1', text: 'It is line 3.' },
    ],
    {
      texts: ['also check b.ts'],
      steering: ['s1'],
    },
  );
  run.usage(2, 1, { outcome: 'cut', settled: false, error: 'stream ended' });
  run.usage(2, 2);
  const todos = [
    { content: 'Fix it', status: 'in_progress' },
    { content: 'Test', status: 'pending' },
  ];
  run.reply(2, '', [call('t2.0', 'todo_write', 'todos', { kind: 'plan', todos })]);
  run.reply(3, 'All done.');
  run.end('completed', 3);
}

/** A server that says what the test wants, and how often it was asked. */
function watchThat(ending: () => Promise<RunEnding>): RunWatch & { reconnects: number } {
  const watch = {
    reconnects: 0,
    ending,
    waiting: () => Promise.resolve([]),
    isUnreachable: (error: unknown) => error instanceof Error && error.message === 'unreachable',
    reconnect: () => {
      watch.reconnects++;
      return Promise.resolve();
    },
  };
  return watch;
}

const never = new Promise<never>(() => undefined);

describe('following a run without a terminal', () => {
  it('prints one line for each event, of children with their name', async () => {
    recordWholeRun();
    const io = createTestIo();
    const ending = { status: 'completed' } as const;
    const { seen } = await followRun({
      home,
      stem: run.stem,
      view: createLineView(io.stdout),
      watch: watchThat(() => Promise.resolve(ending)),
      detached: never,
    });
    expect(io.out().trimEnd().split('\n')).toEqual([
      'turn 1 · I look around.',
      'turn 1 · read src/a.ts',
      '[Subagent spawned] find the cause (explore)',
      '[sub find the cause] tool: grep cause',
      expect.stringMatching(/^\[Subagent done\] find the cause · completed · 2 turns · 120 tokens · 0\.\ds$/),
      'failed: read src/a.ts: no such file',
      'turn 2 · message from you: also check b.ts',
      'turn 2 · model call cut off (attempt 1): stream ended',
      'turn 2 · todos: 0 of 2 done · now: Fix it',
      'turn 3 · All done.',
    ]);
    expect(seen.textOf('job-abc123')).toBe('All done.');
    expect(seen.openAgents).toEqual([]);
  });

  it('prints one JSON object a line, each with its type and run', async () => {
    recordWholeRun();
    const io = createTestIo();
    const view = createJsonView(io.stdout, io.stderr, run.runId);
    await followRun({
      home,
      stem: run.stem,
      view,
      watch: watchThat(() => Promise.resolve({ status: 'completed' })),
      detached: never,
    });
    const events = io
      .out()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as FollowEvent & { run: string });
    expect(events.every(({ type, run: id }) => typeof type === 'string' && id === 'job-abc123')).toBe(true);
    expect(events.filter(({ type }) => type === 'ended')).toHaveLength(2);
    expect(io.err()).toBe('');
  });

  it('shows what is written while it looks, also of a child whose file appears later', async () => {
    run.start();
    const io = createTestIo();
    let end: (ending: RunEnding) => void = () => undefined;
    const following = followRun({
      home,
      stem: run.stem,
      view: createLineView(io.stdout),
      watch: watchThat(() => new Promise((resolve) => (end = resolve))),
      detached: never,
    });
    run.reply(1, 'First.');
    await vi.waitFor(() => expect(io.out()).toContain('First.'));
    run.start({}, CHILD);
    await vi.waitFor(() => expect(io.out()).toContain('[Subagent spawned]'));
    run.end('completed', 1, {}, CHILD);
    end({ status: 'completed' });
    const { ending } = await following;
    expect(ending).toEqual({ status: 'completed' });
    expect(io.out()).toContain('[Subagent done]');
  });

  it('waits for a server that is away, says so once, and asks again', async () => {
    run.start();
    const io = createTestIo();
    const answers = [new Error('unreachable'), new Error('unreachable')];
    const watch = watchThat(() => {
      const error = answers.shift();
      return error ? Promise.reject(error) : Promise.resolve({ status: 'completed' as const });
    });
    const { ending } = await followRun({
      home,
      stem: run.stem,
      view: createLineView(io.stdout),
      watch,
      detached: never,
    });
    expect(ending).toEqual({ status: 'completed' });
    expect(watch.reconnects).toBe(2);
    expect(io.out().match(/server not reachable, waiting/g)).toHaveLength(1);
  });

  it('ends without an ending when the person leaves, also while the server is away', async () => {
    run.start();
    const io = createTestIo();
    const watch = watchThat(() => Promise.reject(new Error('unreachable')));
    const followed = await followRun({
      home,
      stem: run.stem,
      view: createLineView(io.stdout),
      watch,
      detached: new Promise((resolve) => setTimeout(resolve, 300)),
    });
    expect(followed.ending).toBeUndefined();
  });

  it('passes on an error that is no outage', async () => {
    const watch = watchThat(() => Promise.reject(new Error('namespace not found')));
    const view = createLineView(createTestIo().stdout);
    await expect(followRun({ home, stem: run.stem, view, watch, detached: never })).rejects.toThrow(
      'namespace not found',
    );
  });
});

describe('TranscriptTail', () => {
  it('takes a line up once it is whole, skips what is no record, and ignores an id that was there', async () => {
    const tail = new TranscriptTail(home, run.stem);
    expect(await tail.poll()).toEqual([]);
    run.start();
    run.raw('{"v":1,"id":"x","par');
    expect(await tail.poll()).toHaveLength(1);
    run.raw('\n');
    expect(await tail.poll()).toEqual([]);
    expect(tail.skippedLines).toBe(1);
    const line = JSON.stringify({
      v: 1,
      id: 'e1',
      parent: null,
      at: '2026-11-30T12:00:00Z',
      type: 'event',
      turn: 1,
      name: 'n',
      data: {},
    });
    run.raw(`${line}\n${line}\n`);
    expect(await tail.poll()).toHaveLength(1);
  });
});

describe('a call that somebody stopped', () => {
  const FAILED = { job: CANCELLED_JOB, child: `[Agent: find the cause]\n[${CANCELLED_CHILD}]\n(it left no text; …)` };

  beforeEach(() => {
    run.start();
    run.reply(1, '', [
      call('t1.0', 'bash', 'bash make'),
      call('t1.1', 'task', 'task find the cause'),
      call('t1.2', 'bash', 'bash false'),
    ]);
    run.seal(2, [
      { callId: 't1.0', text: `so far\n${FAILED.job}`, isError: true },
      { callId: 't1.1', text: FAILED.child, isError: true },
      { callId: 't1.2', text: 'killed by signal SIGKILL', isError: true },
    ]);
  });

  it('is cancelled in the lines and in JSON; only what failed by itself has failed', async () => {
    const io = createTestIo();
    await new SeenRun(home, run.stem, createLineView(io.stdout)).drain();
    const lines = io.out().trimEnd().split('\n').slice(-3);
    expect(lines).toEqual(
      [
        'turn 2 · cancelled: bash make',
        'turn 2 · cancelled: task find the cause',
        'turn 2 · failed: bash false: killed by signal SIGKILL',
      ].map((line) => line.replace('turn 2 · ', '')),
    );
    const json = createTestIo();
    await new SeenRun(home, run.stem, createJsonView(json.stdout, json.stderr, 'job-abc123')).drain();
    expect(json.out().match(/"cancelled":true/g)).toHaveLength(2);
  });

  it('is cancelled in the tree', async () => {
    const tree = new LiveTree();
    const view = {
      show: (event: FollowEvent) => tree.take(event),
      tick: () => undefined,
      print: () => undefined,
      close: () => undefined,
    };
    await new SeenRun(home, run.stem, view).drain();
    run.seal(3, [{ callId: 't1.0', text: FAILED.job, isError: true }]);
    await new SeenRun(home, run.stem, view).drain();
    expect(tree.lines(100, 20, Date.now()).join('\n')).toMatch(/ · cancelled: bash make/);
  });
});

describe('the live tree', () => {
  it('has a line for each agent that fits the terminal, children indented', async () => {
    recordWholeRun();
    const tree = new LiveTree();
    const view = {
      show: (event: FollowEvent) => tree.take(event),
      tick: () => undefined,
      print: () => undefined,
      close: () => undefined,
    };
    await followRun({
      home,
      stem: run.stem,
      view,
      watch: watchThat(() => Promise.resolve({ status: 'completed' })),
      detached: never,
    });
    const lines = tree.lines(60, 20, Date.now());
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('Do the job');
    expect(lines[1]).toMatch(/^ {2}.*find the cause \(explore\)/);
    for (const line of lines) expect(displayWidth(line.replace(/\u001B\[\d+m/g, ''))).toBeLessThanOrEqual(60);
  });

  it('breaks the line that says for what a run waits, so that its end is read in a narrow terminal too', () => {
    const tree = new LiveTree();
    const text = 'waiting: the model server is another one, so run "errand up" from a shell with its settings';
    tree.take({ type: 'waiting', text });
    const lines = tree.lines(40, 20, Date.now()).map((line) => line.replace(/\u001B\[\d+m/g, ''));
    expect(lines.join(' ')).toBe(text);
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(39);
  });

  it('shows those at work when there are more agents than lines', () => {
    const tree = new LiveTree();
    const at = '2026-11-30T12:00:00.000Z';
    const start = (agentId: string, parentAgentId: string | null) =>
      tree.take({ type: 'started', agentId, at, parentAgentId, agentType: 't', description: agentId, depth: 1 });
    start('root', null);
    for (let i = 0; i < 30; i++) start(`child${i}`, 'root');
    const usage = { own: { ...NO }, subtree: { ...NO } };
    for (let i = 0; i < 28; i++)
      tree.take({ type: 'ended', agentId: `child${i}`, at, status: 'completed', turns: 1, usage });
    const lines = tree.lines(80, 10, Date.now());
    expect(lines.length).toBeLessThanOrEqual(10);
    expect(lines.join('\n')).toContain('child29');
    expect(lines.join('\n')).toMatch(/… 28 more lines/);
    expect(tree.lines(80, 31, Date.now()).length).toBeLessThanOrEqual(31);
  });
});

const NO = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, requests: 0, costUsd: 0 };

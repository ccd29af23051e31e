import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { awaitResult, describePending, isUnreachable } from '../../src/client.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import { usageOf } from '../../src/store/usage.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';
import { startOwnServer } from '../helpers/own-server.ts';
import type { OwnServer } from '../helpers/own-server.ts';
import { waitFor } from '../helpers/wait.ts';

const LONG_MS = 180_000;
/** Longer than the heartbeat time-out, and than a worker tries to report a result. */
const OUTAGE_MS = Number(process.env.ERRAND_TEST_OUTAGE_MS ?? 15_000);

/** Ends during the longer outage. */
const modelCall = toScriptPrompt([
  { text: 'some words that take a while to say', fault: { betweenMs: 700, times: 1 } },
]);
const command = (mark: string) =>
  toScriptPrompt([
    { calls: [{ name: 'bash', input: { command: `echo ${mark} >> count.txt; sleep 6; echo all of it` } }] },
    { expect: { exitCode: 0, includes: 'all of it' }, text: `${mark} is done` },
  ]);
const parent = toScriptPrompt([
  { calls: [{ name: 'task', input: { description: 'runs a command below', prompt: command('below') } }] },
  { expect: { includes: 'below is done', isError: false }, text: 'heard of it' },
]);

describe('while the Temporal server is away', () => {
  let server: OwnServer;
  let harness: Harness;

  beforeAll(async () => {
    server = await startOwnServer();
  }, 60_000);

  beforeEach(async () => {
    harness = await createHarness({ workers: 2, env: { TEMPORAL_ADDRESS: server.address } });
  }, 60_000);

  afterEach(() => harness.close());
  afterAll(() => server.close(), 60_000);

  it.each([
    ['a second', 1_000],
    ['longer than any time-out', OUTAGE_MS],
  ])(
    'promise 1: killed and back after %s, a model call, a command and a wait for children go on',
    async (_, outageMs) => {
      const runs = await startAll();
      const ending = awaitResult(harness.client, runs.modelCall.runId).catch((error: unknown) => error);
      await server.kill();
      await expectUnreachable(runs.modelCall);
      await passed(outageMs);
      await server.comeBack();
      const told = await ending;
      if (told instanceof Error) expect(isUnreachable(told)).toBe(true);
      await expectAllDone(runs);
    },
    OUTAGE_MS + LONG_MS,
  );

  it(
    'promise 2: server and workers that slept together, as a laptop does, go on as if nothing had been',
    async () => {
      const runs = await startAll();
      const pids = [await server.pid(), ...harness.workers.map(({ process: { pid = 0 } }) => pid)];
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      await passed(OUTAGE_MS);
      for (const pid of pids) process.kill(pid, 'SIGCONT');
      await expectAllDone(runs);
      await expectPatience(runs);
    },
    OUTAGE_MS + LONG_MS,
  );

  type Runs = Readonly<Record<'modelCall' | 'command' | 'parent', Run>>;

  async function startAll(): Promise<Runs> {
    const runs = {
      command: await harness.run(command('alone'), { hops: 1 }),
      parent: await harness.run(parent, { hops: 1 }),
      modelCall: await harness.run(modelCall),
    };
    await waitFor(
      'a model call, a command and a child’s command to be under way',
      () =>
        harness.processesIn('echo alone').length > 0 &&
        harness.processesIn('echo below').length > 0 &&
        harness.simulator.ledger().some(({ outcome }) => outcome === 'open'),
      60_000,
    );
    return runs;
  }

  async function expectUnreachable(run: Run): Promise<void> {
    const error: unknown = await describePending(harness.client, run.runId, new Date()).catch((caught) => caught);
    expect(isUnreachable(error), String(error)).toBe(true);
  }

  async function expectAllDone(runs: Runs): Promise<void> {
    for (const run of Object.values(runs)) {
      const ended = await waitFor('the run to end', () => resultOf(run), LONG_MS);
      expect(ended).toMatchObject({ status: 'completed' });
    }
    expect((await readFile(join(harness.workspace, 'count.txt'), 'utf8')).trim().split('\n').sort()).toEqual([
      'alone',
      'below',
    ]);
    await expectExactBill(runs);
  }

  /** The server gives nothing up that has slept over a long weekend: to it that is a time as any other. */
  async function expectPatience(runs: Runs): Promise<void> {
    for (const { handle } of Object.values(runs)) {
      const { events = [] } = await handle.fetchHistory();
      const scheduled = (events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
      const limits = scheduled.map(({ scheduleToCloseTimeout }) => Number(scheduleToCloseTimeout?.seconds ?? 0));
      expect(limits.length).toBeGreaterThan(1);
      for (const seconds of limits.filter((limit) => limit > 0)) expect(seconds).toBeGreaterThan(4 * 24 * 3600);
    }
  }

  /** Every request is either settled or listed; nothing that was recorded is asked for again. */
  async function expectExactBill(runs: Runs): Promise<void> {
    let requests = 0;
    for (const run of Object.values(runs)) {
      for (const { agentId } of (await listAgents(harness.home, run.stem)).agents) {
        const records = await harness.records(run, agentId);
        const replies = records.flatMap((record) =>
          record.type === 'message' && record.role === 'assistant' ? [record.turn] : [],
        );
        expect(replies).toEqual([...new Set(replies)]);
        expect(records.filter(({ type }) => type === 'end')).toHaveLength(1);
        expect(usageOf(records).unsettled.length).toBeLessThanOrEqual(1);
        requests += records.filter(({ type }) => type === 'attempt').length;
      }
    }
    expect(harness.simulator.ledger()).toHaveLength(requests);
  }

  // As the command line does it: an unreachable server is asked again.
  async function resultOf(run: Run) {
    return awaitResult(harness.client, run.runId).catch((error: unknown) => {
      if (!isUnreachable(error)) throw error;
      return undefined;
    });
  }
});

async function passed(ms: number): Promise<void> {
  const until = Date.now() + ms;
  await waitFor(`${ms} ms to pass`, () => Date.now() >= until, ms + 5_000);
}

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { ensureServer, stopServer } from '../../src/server/index.ts';
import { toScriptPrompt } from '../../src/simulator/index.ts';
import { listAgents } from '../../src/store/listing.ts';
import { endedAttempts, runningAttempts, timeOuts } from '../helpers/attempts.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run, Worker } from '../helpers/harness.ts';
import { isRunning } from '../helpers/processes.ts';
import { tellOfDeath } from '../helpers/lose-workers.ts';
import { waitFor } from '../helpers/wait.ts';

/** The first request is never answered; the next one is. */
const silentOnce = (name: string) =>
  toScriptPrompt([{ text: `${name} is done`, fault: { silence: 'message_start', times: 1 } }], name);

/** One line in the file is one real execution. */
const command = (mark: string, seconds = 4) =>
  toScriptPrompt(
    [
      { calls: [{ name: 'bash', input: { command: `echo ${mark} >> count.txt; sleep ${seconds}; echo all of it` } }] },
      { expect: { exitCode: 0, includes: 'all of it' }, text: 'done' },
    ],
    mark,
  );

describe('the death of a worker', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 2 });
  }, 60_000);

  afterEach(() => harness.close());

  it('promise 1: told to the server, moves its work to the other worker without a time-out', async () => {
    const run = await harness.run(silentOnce('moved'));
    const victim = await holderOf(harness, run, 't1');
    await isAsking(harness, 'moved');
    await victim.kill();
    await tellOfDeath(harness, victim);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'moved is done' });
    const turn = (await endedAttempts(run.handle)).find(({ activityId }) => activityId === 't1');
    expect(turn).toMatchObject({ attempt: 2, lastFailure: 'Worker.Lost' });
    expect(turn?.identity).not.toBe(victim.identity);
    expect(await timeOuts(run.handle)).toEqual([]);
  }, 90_000);

  it('promise 2: told to the server, leaves a command running and its output whole', async () => {
    const run = await harness.run(command('told-once'));
    const victim = await holderOf(harness, run, 't1.0');
    await waitFor('the command to run', () => harness.processesIn('told-once').length > 0);
    await victim.kill();
    await tellOfDeath(harness, victim);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(await counted(harness)).toEqual(['told-once']);
    const call = (await endedAttempts(run.handle)).find(({ activityId }) => activityId === 't1.0');
    expect(call).toMatchObject({ attempt: 2, lastFailure: 'Worker.Lost' });
  }, 90_000);

  it('does not disturb what the living worker does', async () => {
    const [one, other] = await runsOfBothWorkers(harness);
    const victim = await holderOf(harness, one, 't1');
    await isAsking(harness, 'first');
    await victim.kill();
    await tellOfDeath(harness, victim);
    expect(await one.result()).toMatchObject({ status: 'completed' });
    expect(await runningAttempts(other.handle)).toMatchObject([{ activityId: 't1', attempt: 1 }]);
  }, 90_000);
});

describe('a worker that is told to end', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 2 });
  }, 60_000);

  afterEach(() => harness.close());

  it('promise 3: finishes its model call', async () => {
    const prompt = toScriptPrompt([{ text: 'finished in time', fault: { betweenMs: 400 } }], 'finishes');
    const run = await harness.run(prompt);
    const leaving = await holderOf(harness, run, 't1');
    await isAsking(harness, 'finishes');
    await leaving.kill('SIGTERM');
    expect(leaving.process.exitCode).toBe(0);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'finished in time' });
    expect(harness.simulator.ledger()).toHaveLength(1);
    expect(await timeOuts(run.handle)).toEqual([]);
  }, 90_000);

  it('promise 2: hands a command over at once, and it runs on', async () => {
    const run = await harness.run(command('handed-over', 6));
    const leaving = await holderOf(harness, run, 't1.0');
    await waitFor('the command to run', () => harness.processesIn('handed-over').length > 0);
    await leaving.kill('SIGTERM');
    expect(harness.processesIn('handed-over').length).toBeGreaterThan(0);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(await counted(harness)).toEqual(['handed-over']);
    const call = (await endedAttempts(run.handle)).find(({ activityId }) => activityId === 't1.0');
    expect(call).toMatchObject({ attempt: 2, lastFailure: 'Worker.Shutdown' });
    expect(await timeOuts(run.handle)).toEqual([]);
  }, 90_000);

  it('promise 1: hands a model call over that does not end in its grace time, not as a cancellation', async () => {
    const run = await harness.run(silentOnce('given up'));
    const leaving = await holderOf(harness, run, 't1');
    await isAsking(harness, 'given up');
    await leaving.kill('SIGTERM');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'given up is done' });
    const turn = (await endedAttempts(run.handle)).find(({ activityId }) => activityId === 't1');
    expect(turn).toMatchObject({ attempt: 2, lastFailure: 'Worker.Shutdown' });
    expect(await timeOuts(run.handle)).toEqual([]);
  }, 90_000);
});

describe('supervised workers', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0 });
  }, 60_000);

  afterEach(async () => {
    await stopServer({ home: harness.home, log: () => undefined });
    await harness.close();
  });

  it('promise 1: are told about by their supervisor when all of them are killed', async () => {
    const { pids } = await supervise(harness, 'a-build');
    const run = await harness.run(silentOnce('supervised'));
    await isAsking(harness, 'supervised');
    for (const pid of pids.workers) process.kill(pid, 'SIGKILL');
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'supervised is done' });
    const turn = (await endedAttempts(run.handle)).find(({ activityId }) => activityId === 't1');
    expect(turn).toMatchObject({ attempt: 2, lastFailure: 'Worker.Lost' });
  }, 120_000);

  it('promise 1: of an older build hand over what they do, in a command and in a model call', async () => {
    const first = await supervise(harness, 'a-build');
    const [building, silent, asking] = await Promise.all([
      harness.run(command('upgraded', 8)),
      harness.run(silentOnce('unanswered')),
      harness.run(toScriptPrompt([{ text: 'asked once', fault: { betweenMs: 500 } }], 'asked')),
    ]);
    await waitFor('the command to run', () => harness.processesIn('upgraded').length > 0);
    for (const word of ['asked', 'unanswered']) await isAsking(harness, word);
    const second = await supervise(harness, 'next-build');
    expect(second.pids.workers.filter((pid) => first.pids.workers.includes(pid))).toEqual([]);
    // Nobody had to wait for the call that was still open.
    expect(first.pids.workers.filter(isRunning)).not.toEqual([]);
    expect(await building.result()).toMatchObject({ status: 'completed', preview: 'done' });
    expect(await asking.result()).toMatchObject({ status: 'completed', preview: 'asked once' });
    expect(await silent.result()).toMatchObject({ status: 'completed', preview: 'unanswered is done' });
    expect(await counted(harness)).toEqual(['upgraded']);
    const call = (await endedAttempts(building.handle)).find(({ activityId }) => activityId === 't1.0');
    expect(call).toMatchObject({ attempt: 2, lastFailure: 'Worker.Shutdown' });
    for (const run of [building, silent, asking]) expect(await timeOuts(run.handle)).toEqual([]);
  }, 120_000);
});

describe('a supervisor that was killed', () => {
  let harness: Harness;

  beforeEach(async () => {
    harness = await createHarness({ workers: 0 });
  }, 60_000);

  afterEach(async () => {
    await stopServer({ home: harness.home, log: () => undefined });
    await harness.close();
  });

  it('promise 5: with all its workers, is told to the server: a cancel waits for no call of theirs', async () => {
    const { pids } = await supervise(harness, 'a-build');
    const kid = (name: string) => ({ name: 'task', input: { description: name, prompt: command(name, 600) } });
    const run = await harness.run(toScriptPrompt([{ calls: [kid('kid-one'), kid('kid-two')] }], 'above'));
    for (const name of ['kid-one', 'kid-two'])
      await waitFor(`${name} to work`, () => harness.processesIn(name).length > 0);
    // Nobody is in a workflow task: there a kill costs its time-out, whoever is told.
    await Promise.all((await handlesOf(harness, run)).map((handle) => isIdle(handle)));
    for (const pid of [pids.supervisor, ...pids.workers]) process.kill(pid, 'SIGKILL');
    await run.handle.cancel();
    await supervise(harness, 'a-build');
    await expect(run.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
    for (const handle of await handlesOf(harness, run)) {
      expect((await handle.describe()).status.name).toBe('CANCELLED');
      // A workflow task may have waited in vain while there was no worker; no call may have been waited for.
      expect(await timeOuts(handle)).not.toContain('activity timed out');
    }
    expect(['kid-one', 'kid-two'].flatMap((name) => harness.processesIn(name))).toEqual([]);
  }, 120_000);

  it('promise 3: leaves workers that finish their model call while others work already', async () => {
    const first = await supervise(harness, 'a-build');
    const run = await harness.run(toScriptPrompt([{ text: 'asked once', fault: { betweenMs: 1_500 } }], 'asked'));
    await isAsking(harness, 'asked');
    process.kill(first.pids.supervisor, 'SIGKILL');
    const second = await supervise(harness, 'a-build');
    expect(first.pids.workers.filter(isRunning)).toHaveLength(1);
    expect(second.pids.workers.filter((pid) => first.pids.workers.includes(pid))).toEqual([]);
    expect(await run.result()).toMatchObject({ status: 'completed', preview: 'asked once' });
    expect(harness.simulator.ledger()).toHaveLength(1);
    await waitFor('the last of them to end', () => first.pids.workers.filter(isRunning).length === 0);
  }, 120_000);
});

/** The root's and its children's. */
async function handlesOf(harness: Harness, run: Run): Promise<readonly WorkflowHandle[]> {
  const { agents } = await listAgents(harness.home, run.stem);
  return agents.map(({ agentId }) => (agentId === run.runId ? run.handle : run.child(agentId)));
}

async function isIdle(handle: WorkflowHandle): Promise<void> {
  await waitFor('no workflow task to be open', async () => !(await handle.describe()).raw.pendingWorkflowTask);
}

function supervise(harness: Harness, buildId: string) {
  return ensureServer({
    home: harness.home,
    other: { address: inject('temporalAddress'), namespace: 'default' },
    workers: 2,
    environment: harness.environment,
    buildId,
    log: () => undefined,
  });
}

/** Waits until the model server has an open request of the conversation with this word in it. */
async function isAsking(harness: Harness, word: string): Promise<void> {
  await waitFor(`${word} to ask the model`, () =>
    harness.simulator
      .ledger()
      .some(({ outcome, messages }) => outcome === 'open' && JSON.stringify(messages).includes(word)),
  );
}

/** The worker that has the activity now. */
async function holderOf(harness: Harness, run: Run, activityId: string): Promise<Worker> {
  return waitFor(`a worker to have ${activityId}`, async () => {
    const held = (await runningAttempts(run.handle)).find((attempt) => attempt.activityId === activityId);
    return harness.workers.find(({ identity }) => identity === held?.identity);
  });
}

/** Two runs in a model call each, on different workers. */
async function runsOfBothWorkers(harness: Harness): Promise<readonly [Run, Run]> {
  const first = await harness.run(silentOnce('first'));
  const holder = await holderOf(harness, first, 't1');
  for (let n = 1; n <= 20; n++) {
    const next = await harness.run(silentOnce(`next ${n}`));
    if ((await holderOf(harness, next, 't1')) !== holder) return [first, next];
  }
  throw new Error('20 runs in a row went to one worker');
}

async function counted(harness: Harness): Promise<string[]> {
  return (await readFile(join(harness.workspace, 'count.txt'), 'utf8')).trim().split('\n');
}

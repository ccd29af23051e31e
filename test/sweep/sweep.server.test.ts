import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CRASH_POINTS } from '../../src/crash-points.ts';
import { everyPointOnce, killsOfRound } from './kills.ts';
import { runRound, undisturbed } from './round.ts';
import type { RoundResult } from './round.ts';
import { createWorld } from './world.ts';
import type { World } from './world.ts';

/** A failure is repeated with the same seed; `npm run sweep` makes many more. */
const SEED = 1;
const MOMENTS = 20;
const PARALLEL_JOBS = 4;
/** Each with a job that is cancelled right before or right after. */
const CANCELS = 6;

describe(`kill -9 at every crash point and at ${MOMENTS} random moments (seed ${SEED})`, () => {
  let world: World;
  let result: RoundResult;
  let cancelled: RoundResult;
  const reached = new Set<string>();

  beforeAll(async () => {
    world = await createWorld(() => undefined);
    const expected = await undisturbed(world);
    for (const point of CRASH_POINTS) if (world.timesReached(point) > 0) reached.add(point);
    const kills = everyPointOnce(SEED, MOMENTS);
    result = await runRound(
      { world, name: `test-${SEED}`, kills, parallel: PARALLEL_JOBS, say: (line) => console.log(line) },
      expected,
    );
    cancelled = await runRound(
      {
        world,
        name: `test-${SEED}-cancelled`,
        kills: killsOfRound(SEED, 0, CANCELS),
        parallel: 2,
        cancels: true,
        say: (line) => console.log(line),
      },
      expected,
    );
  }, 600_000);

  afterAll(async () => {
    expect(
      await world.close([result, cancelled].some((one) => one === undefined || one.violations.length > 0)),
    ).toEqual([]);
  }, 60_000);

  it('the job reaches every crash point, and somebody died at each', () => {
    expect(CRASH_POINTS.filter((point) => !reached.has(point))).toEqual([]);
    expect(result.missed.filter((what) => what.includes(', time '))).toEqual([]);
  });

  it('promise 1: nothing is lost', () => {
    expect(problems('lost')).toEqual([]);
  });

  it('promise 2: no effect happens twice, and what cannot be known is only said when a command was hit', () => {
    expect([...problems('doubled'), ...problems('untrue').filter((text) => text.includes('unknown effect'))]).toEqual(
      [],
    );
  });

  it('promise 3: no recorded reply is there twice or asked for again', () => {
    expect(problems('doubled').filter((text) => /^(reply|record)/.test(text))).toEqual([]);
  });

  it('promise 7: what was served is what was settled, plus at most one unsettled attempt a kill and call', () => {
    expect(problems('untrue').filter((text) => /bill|unsettled/.test(text))).toEqual([]);
  });

  it('promise 9: transcripts replay to what the model server received, and metas agree with them', () => {
    expect(problems('untrue')).toEqual([]);
  });

  it('promise 5: jobs that are cancelled while processes die end as cancelled at every level, and nothing goes on', () => {
    expect(cancelled.jobs).toBeGreaterThan(0);
    expect(cancelled.violations.map(({ kind, text }) => `${kind}: ${text}`)).toEqual([]);
  });

  it('leaves no process, no open job and no claim without a result', () => {
    expect(problems('orphan')).toEqual([]);
  });

  function problems(kind: string): string[] {
    return result.violations.filter((violation) => violation.kind === kind).map(({ text }) => text);
  }
});

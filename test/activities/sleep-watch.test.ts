import { expect, it } from 'vitest';
import { createSleepWatch } from '../../src/activities/sleep-watch.ts';

/** Two clocks that are set by hand. */
function testClocks() {
  const ms = { steady: 0, wall: 1_000_000 };
  const watch = createSleepWatch([() => ms.steady, () => ms.wall]);
  const pass = (steadyMs: number, wallMs = steadyMs) => {
    ms.steady += steadyMs;
    ms.wall += wallMs;
  };
  return { watch, pass };
}

it('a process that is looked at every two seconds has not slept', () => {
  const { watch, pass } = testClocks();
  for (let beat = 0; beat < 100; beat++) {
    pass(2_000);
    watch.look();
  }
  expect(watch.count()).toBe(0);
});

it.each([
  ['a stopped process', 9_000, 9_000],
  ['a machine that slept, whose steady clock stood still', 10, 3600_000],
  ['a clock that was set back an hour', 10, -3600_000],
])('%s counts, once', (_, steadyMs, wallMs) => {
  const { watch, pass } = testClocks();
  pass(steadyMs, wallMs);
  watch.look();
  expect(watch.count()).toBe(1);
  pass(2_000);
  expect(watch.count()).toBe(1);
});

it('is noticed by whoever asks first, the timer or the one who acts', () => {
  const { watch, pass } = testClocks();
  pass(9_000);
  expect(watch.count()).toBe(1);
});

import { CRASH_POINTS } from '../../src/crash-points.ts';
import type { CrashPoint } from '../../src/crash-points.ts';
import { createSeeded } from './seeded.ts';
import type { Seeded } from './seeded.ts';

/** What gets SIGKILL. `everything` includes the supervisors of shell commands: as if the host had lost its power. */
export type Target = 'one worker' | 'all workers' | 'supervisor' | 'server' | 'everything';

export type Kill = {
  /** Without waiting for the one before to be overcome. */
  readonly isHasty: boolean;
} & (
  | { readonly kind: 'point'; readonly point: CrashPoint; readonly nth: number; readonly also?: Target }
  | { readonly kind: 'moment'; readonly target: Target; readonly afterMs: number }
);

const TARGETS: Readonly<Record<Target, number>> = {
  'one worker': 8,
  'all workers': 5,
  supervisor: 2,
  server: 3,
  everything: 2,
};

/** The kills of one round: half of them at points, in an order that has had all of them before any comes again. */
export function killsOfRound(seed: number, round: number, count: number): Kill[] {
  const seeded = createSeeded(`${seed}/${round}`);
  const points = Math.floor(count / 2);
  const order = createSeeded(`${seed}/points`).shuffled(CRASH_POINTS);
  const chosen = Array.from({ length: points }, (_, index) => order[(round * points + index) % order.length]);
  const atPoints = chosen.flatMap((point) => (point === undefined ? [] : [atPoint(seeded, point)]));
  return seeded.shuffled([...atPoints, ...atMoments(seeded, count - points)]);
}

/** Every point once, with random moments between them. */
export function everyPointOnce(seed: number, moments: number): Kill[] {
  const seeded = createSeeded(`${seed}/every point`);
  const alone = CRASH_POINTS.map((point) => ({ ...atPoint(seeded, point), also: undefined }));
  return seeded.shuffled([...alone, ...atMoments(seeded, moments)]).map((kill) => ({ ...kill, isHasty: true }));
}

/** A death at each of the points named, in this order. */
export function killsAt(seed: number, names: readonly string[]): Kill[] {
  const seeded = createSeeded(`${seed}/points named`);
  return names.map((name) => {
    const point = CRASH_POINTS.find((known) => known === name);
    if (point === undefined) throw new Error(`There is no crash point ${name}. There are: ${CRASH_POINTS.join(', ')}.`);
    return { ...atPoint(seeded, point), also: undefined };
  });
}

export function toText(kill: Kill): string {
  if (kill.kind === 'moment') return `${kill.target} after ${kill.afterMs} ms`;
  return `${kill.point}, time ${kill.nth}${kill.also === undefined ? '' : `, then ${kill.also}`}`;
}

function atPoint(seeded: Seeded, point: CrashPoint): Kill {
  const also = seeded.weighed({ none: 12, 'all workers': 4, server: 2, everything: 2 });
  return {
    kind: 'point',
    point,
    nth: 1 + seeded.below(3),
    ...(also !== 'none' && { also }),
    isHasty: seeded.below(4) === 0,
  };
}

function atMoments(seeded: Seeded, count: number): Kill[] {
  return Array.from({ length: count }, () => ({
    kind: 'moment',
    target: seeded.weighed(TARGETS),
    afterMs: seeded.below(1500),
    isHasty: seeded.below(4) === 0,
  }));
}

/** Choices that come out the same whenever the seed is the same. */
export interface Seeded {
  /** From 0 up to and without `end`. */
  below(end: number): number;
  pick<T>(list: readonly T[]): T;
  /** One of the keys, the heavier the more often. */
  weighed<Key extends string>(weights: Readonly<Record<Key, number>>): Key;
  shuffled<T>(list: readonly T[]): T[];
}

export function createSeeded(seed: string): Seeded {
  const next = mulberry32(hash(seed));
  const below = (end: number): number => Math.floor(next() * end);
  const pick = <T>(list: readonly T[]): T => {
    const chosen = list[below(list.length)];
    if (chosen === undefined) throw new Error('there is nothing to pick from');
    return chosen;
  };
  return {
    below,
    pick,
    weighed: (weights) => {
      const keys = Object.keys(weights) as (keyof typeof weights)[];
      return pick(keys.flatMap((key) => Array.from({ length: weights[key] }, () => key)));
    },
    shuffled: (list) =>
      list
        .map((item) => ({ item, rank: next() }))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ item }) => item),
  };
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

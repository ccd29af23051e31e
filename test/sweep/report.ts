import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { RoundResult } from './round.ts';

/** What all rounds so far came to; kept in a file, so that a sweep can be gone on with. */
export interface Tally {
  readonly seed: number;
  readonly rounds: number;
  readonly jobs: number;
  readonly kills: number;
  readonly recovered: number;
  readonly lost: number;
  readonly doubled: number;
  readonly unknownTold: number;
  readonly unsettled: number;
  readonly orphans: number;
  /** A bill out of its bounds, a transcript that does not replay, a meta file that says something else. */
  readonly untrue: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
}

export function emptyTally(seed: number): Tally {
  const none = { rounds: 0, jobs: 0, kills: 0, recovered: 0, lost: 0, doubled: 0, unknownTold: 0, unsettled: 0 };
  return { seed, ...none, orphans: 0, untrue: 0, byKind: {}, failures: [] };
}

export function readTally(file: string, seed: number): Tally {
  if (!existsSync(file)) return emptyTally(seed);
  return JSON.parse(readFileSync(file, 'utf8')) as Tally;
}

export function writeTally(file: string, tally: Tally): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.draft`, `${JSON.stringify(tally, null, 2)}\n`);
  renameSync(`${file}.draft`, file);
}

export function withRound(tally: Tally, result: RoundResult, round: number, orphans: readonly string[]): Tally {
  const count = (kind: string): number => result.violations.filter((violation) => violation.kind === kind).length;
  const isClean = result.violations.length === 0 && orphans.length === 0;
  const problems = [
    ...result.violations.map(({ kind, text }) => `${kind}: ${text}`),
    ...orphans.map((one) => `orphan: ${one}`),
  ];
  return {
    seed: tally.seed,
    rounds: tally.rounds + 1,
    jobs: tally.jobs + result.jobs,
    kills: tally.kills + result.kills.length,
    recovered: tally.recovered + (isClean ? result.kills.length : 0),
    lost: tally.lost + count('lost'),
    doubled: tally.doubled + count('doubled'),
    unknownTold: tally.unknownTold + result.verdicts.reduce((sum, { unknownTold }) => sum + unknownTold, 0),
    unsettled: tally.unsettled + result.verdicts.reduce((sum, { unsettled }) => sum + unsettled, 0),
    orphans: tally.orphans + count('orphan') + orphans.length,
    untrue: tally.untrue + count('untrue'),
    byKind: result.kills.reduce<Record<string, number>>(
      (kinds, { what }) => ({ ...kinds, [kindOf(what)]: (kinds[kindOf(what)] ?? 0) + 1 }),
      { ...tally.byKind },
    ),
    failures: [...tally.failures, ...problems.map((problem) => `round ${round}: ${problem}`)],
  };
}

/** The table that is published. */
export function toTable(tally: Tally): string {
  const columns: readonly (readonly [string, number])[] = [
    ['kills', tally.kills],
    ['recovered', tally.recovered],
    ['lost', tally.lost],
    ['doubled', tally.doubled],
    ['unknown told', tally.unknownTold],
    ['unsettled attempts', tally.unsettled],
    ['orphans', tally.orphans],
    ['untrue', tally.untrue],
    ['jobs', tally.jobs],
  ];
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    row(columns.map(([name]) => name)),
    row(columns.map(() => '---:')),
    row(columns.map(([, value]) => String(value))),
  ].join('\n');
}

/** How often each kind of kill happened, most often first. */
export function toKindTable({ byKind }: Tally): string {
  const rows = Object.entries(byKind).toSorted(([a, m], [b, n]) => n - m || a.localeCompare(b));
  return ['| killed | times |', '| --- | ---: |', ...rows.map(([kind, count]) => `| ${kind} | ${count} |`)].join('\n');
}

function kindOf(what: string): string {
  const target = what.replace(/ after \d+ ms$/, '');
  return target === what ? `at ${what.replace(/, time \d+/, '')}` : `${target}, at a random moment`;
}

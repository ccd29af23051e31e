import { appendFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { killsAt, killsOfRound } from './kills.ts';
import type { Kill } from './kills.ts';
import { emptyTally, readTally, toKindTable, toTable, withRound, writeTally } from './report.ts';
import type { Tally } from './report.ts';
import { runRound, undisturbed } from './round.ts';
import type { RoundResult } from './round.ts';
import { createWorld } from './world.ts';
import type { World } from './world.ts';

/** `npm run sweep -- --kills N --seed S`: goes on where the sweep of this seed was left. `--round R` repeats one round,
 * `--at effect.after,meta.before` dies at these points only, with `--cancel` while jobs are cancelled. */
const PROJECT = resolve(import.meta.dirname, '../..');
const KILLS_PER_ROUND = 24;
const PARALLEL_JOBS = 3;
/** In every so-many-th round jobs are cancelled. */
const CANCELS_EVERY = 4;

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    round: { type: 'string' },
    at: { type: 'string' },
    cancel: { type: 'boolean', default: false },
    state: { type: 'string' },
    fresh: { type: 'boolean', default: false },
  },
});
const seed = number('seed', values.seed);
const wanted = number('kills', values.kills);
const file = resolve(values.state ?? join(PROJECT, '.cache', `sweep-${seed}.json`));
const startedMs = Date.now();
let current: World | undefined;

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Vite's own would end this process before the world is gone.
  process.removeAllListeners(signal);
  process.once(signal, () => void stop());
}

process.exitCode = (await main()) ? 0 : 1;
process.exit();

async function main(): Promise<boolean> {
  if (values.at !== undefined) return isClean(await oneRound(emptyTally(seed), 0));
  if (values.round !== undefined) return isClean(await oneRound(emptyTally(seed), number('round', values.round)));
  let tally = values.fresh ? emptyTally(seed) : readTally(file, seed);
  while (tally.kills < wanted) {
    tally = await oneRound(tally, tally.rounds);
    writeTally(file, tally);
    console.log(`${clock()} seed ${seed}: ${tally.kills} of ${wanted} kills\n${toTable(tally)}`);
  }
  console.log(`\n${toTable(tally)}\n\n${toKindTable(tally)}`);
  for (const failure of tally.failures) console.log(failure);
  return isClean(tally);
}

async function oneRound(tally: Tally, round: number): Promise<Tally> {
  const world = await createWorld(note);
  current = world;
  const name = `${seed}-${round}`;
  const kills = values.at ? killsAt(seed, values.at.split(',')) : killsOfRound(seed, round, KILLS_PER_ROUND);
  const cancels = values.at === undefined ? (seed + round) % CANCELS_EVERY === 0 : values.cancel;
  const result = await playRound(world, { name, kills, cancels });
  const isBad = result.violations.length > 0;
  const orphans = await world.close(isBad);
  const next = withRound(tally, result, round, orphans);
  if (isBad || orphans.length > 0) explain(round, next, isBad ? world.folder : undefined);
  return next;
}

/** Trouble of the sweep itself ends it, with the world closed and its files kept. */
async function playRound(
  world: World,
  round: { name: string; kills: readonly Kill[]; cancels: boolean },
): Promise<RoundResult> {
  try {
    return await runRound({ world, ...round, parallel: PARALLEL_JOBS, say }, await undisturbed(world));
  } catch (error) {
    await world.close(true);
    console.log(`Round ${round.name} could not be played to its end; its files are kept in ${world.folder}`);
    throw error;
  }
}

/** Nothing of an interrupted round stays behind; the rounds before it are in the state file. */
async function stop(): Promise<void> {
  await current?.close(false);
  process.exit(130);
}

function explain(round: number, tally: Tally, folder: string | undefined): void {
  for (const failure of tally.failures.filter((one) => one.startsWith(`round ${round}:`))) console.log(failure);
  const again = values.at === undefined ? `--round ${round}` : `--at ${values.at}${values.cancel ? ' --cancel' : ''}`;
  console.log(`Repeat with: npm run sweep -- --seed ${seed} ${again}`);
  if (folder) console.log(`Its files are kept in ${folder}`);
}

function isClean({ lost, doubled, orphans, untrue }: Tally): boolean {
  return lost + doubled + orphans + untrue === 0;
}

function say(line: string): void {
  console.log(`${clock()} ${line}`);
}

/** What the supervisor has to say is of interest only when something went wrong. */
function note(line: string): void {
  appendFileSync(join(PROJECT, '.cache', `sweep-${seed}.log`), `${new Date().toISOString()} ${line}\n`);
}

function clock(): string {
  return `${((Date.now() - startedMs) / 1000).toFixed(1).padStart(7)} s`;
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new Error(`--${name} is ${JSON.stringify(text)}: expected a whole number, for example --${name} 7`);
}

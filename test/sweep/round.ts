import { setTimeout as sleep } from 'node:timers/promises';
import { OWNER_EVENT } from '../../src/store/owner.ts';
import { readAgents } from './agents.ts';
import { checkRun } from './check.ts';
import type { Verdict } from './check.ts';
import { ENDLESS } from './job.ts';
import { toText } from './kills.ts';
import type { Kill, Target } from './kills.ts';
import { doctorProblems } from './leftovers.ts';
import { People } from './people.ts';
import { filesIn, isOver, startJob, transcriptBytes, waitUntilOver } from './run.ts';
import type { JobRun } from './run.ts';
import { createSeeded } from './seeded.ts';
import type { Seeded } from './seeded.ts';
import { lost, stray } from './violation.ts';
import type { Done, Violation } from './violation.ts';
import type { World } from './world.ts';

export interface RoundOptions {
  readonly world: World;
  /** Names the round; its small choices (which worker, how long it stays down) come from it. */
  readonly name: string;
  readonly kills: readonly Kill[];
  /** Jobs kept on their way at once. */
  readonly parallel: number;
  /** Jobs never end by themselves, and with every kill somebody cancels one, right before it or right after. */
  readonly cancels?: boolean;
  readonly say: (line: string) => void;
}

export interface RoundResult {
  readonly kills: readonly Done[];
  /** Kills that found nothing to kill, or a point that nobody came to. */
  readonly missed: readonly string[];
  readonly jobs: number;
  readonly verdicts: readonly Verdict[];
  readonly violations: readonly Violation[];
}

const POINT_WAIT_MS = 20_000;
const PROGRESS_WAIT_MS = 30_000;
const LOOK_EVERY_MS = 40;
const HEARTBEAT_TIMEOUT_MS = 10_000;
const MESSAGE_WITHIN_MS = 6_000;

/** Files that an undisturbed job leaves; throws when even that one is not right. */
export async function undisturbed(world: World): Promise<Readonly<Record<string, string>>> {
  await world.bringUp();
  const run = await startJob(world, 'undisturbed');
  const problem = await waitUntilOver(world, [run]);
  if (problem.length > 0) throw new Error(problem.join('\n'));
  const { violations } = await checkRun({ world, run, kills: [] });
  if (violations.length > 0) throw new Error(violations.map(({ text }) => text).join('\n'));
  const root = (await readAgents(world, run)).find(({ role }) => role === 'root');
  const hasContinued = root?.records.some((record) => record.type === 'event' && record.name === OWNER_EVENT);
  if (!hasContinued) throw new Error('the root of the undisturbed job did not continue as new: lower HISTORY_EVENTS');
  return filesIn(run.workspace);
}

/** Kills, one after another, while jobs run; then lets all jobs come to their end and looks at each. */
export async function runRound(
  options: RoundOptions,
  expected: Readonly<Record<string, string>>,
): Promise<RoundResult> {
  const round = new Round(options);
  for (const kill of options.kills) await round.carryOut(kill);
  return round.finish(expected);
}

class Round {
  readonly #options: RoundOptions;
  readonly #seeded: Seeded;
  readonly #jobs: JobRun[] = [];
  readonly #over = new Set<JobRun>();
  readonly #people: People;
  readonly #done: Done[] = [];
  #latest: (Omit<Done, 'untilMs'> & { readonly isServer: boolean }) | undefined;
  readonly #missed: string[] = [];
  readonly #strays = new Set<number>();

  constructor(options: RoundOptions) {
    this.#options = options;
    this.#seeded = createSeeded(`${options.name}/round`);
    this.#people = new People(options.world);
  }

  async carryOut(kill: Kill): Promise<void> {
    const { world, say, cancels } = this.#options;
    await this.#recover();
    await this.#fill();
    if (!kill.isHasty) await this.#waitForProgress();
    const isCancelledFirst = this.#seeded.below(3) > 0;
    if (cancels && isCancelledFirst) this.#cancelOne();
    const isHit = kill.kind === 'point' ? await this.#atPoint(kill) : await this.#atMoment(kill);
    say(`${isHit ? 'killed' : 'missed'}: ${toText(kill)}`);
    if (!isHit) this.#missed.push(toText(kill));
    if (cancels && !isCancelledFirst) this.#cancelOne();
    // How long it stays down before somebody notices.
    if (!(await world.isSupervised())) await sleep(this.#seeded.below(800));
  }

  async finish(expected: Readonly<Record<string, string>>): Promise<RoundResult> {
    const { world, cancels } = this.#options;
    await this.#recover();
    if (cancels) for (const run of this.#running()) this.#people.cancel(run);
    const stuck = await waitUntilOver(world, this.#jobs);
    await this.#people.settled();
    const verdicts: Verdict[] = [];
    for (const run of this.#jobs) {
      const doings = this.#people.doings(run);
      verdicts.push(await checkRun({ world, run, kills: this.#done, doings, expected }));
    }
    const violations = [...verdicts.flatMap((verdict) => verdict.violations), ...(await doctorProblems(world))];
    return {
      kills: this.#done,
      missed: this.#missed,
      jobs: this.#jobs.length,
      verdicts,
      violations: [...stuck.map(lost), ...[...this.#strays].map(stray), ...violations],
    };
  }

  async #atPoint(kill: Extract<Kill, { kind: 'point' }>): Promise<boolean> {
    const { world } = this.#options;
    world.arm(kill.point, kill.nth);
    const deadline = Date.now() + POINT_WAIT_MS;
    while (!world.isTaken(kill.point) && Date.now() < deadline) {
      await this.#fill();
      await sleep(5);
    }
    const isHit = world.disarm(kill.point);
    if (!isHit) return false;
    this.#note(kill, kill.also, Date.now());
    if (kill.also !== undefined) await world.kill(kill.also, this.#seeded.below);
    return true;
  }

  async #atMoment(kill: Extract<Kill, { kind: 'moment' }>): Promise<boolean> {
    await sleep(kill.afterMs);
    const atMs = Date.now();
    const isHit = await this.#options.world.kill(kill.target, this.#seeded.below);
    if (isHit) this.#note(kill, kill.target, atMs);
    return isHit;
  }

  #note(kill: Kill, target: Target | undefined, atMs: number): void {
    const isCommand = kill.kind === 'point' && kill.point.startsWith('command');
    const hitsCommands = isCommand || target === 'everything';
    this.#latest = { atMs, what: toText(kill), hitsCommands, isServer: target === 'server' };
  }

  /**
   * Brings everything up. Until then the kill may cost attempts that began after it: a new supervisor ends the workers
   * that the old one left, and what ran on while the server was away is given up when its heartbeats are missed.
   */
  async #recover(): Promise<void> {
    await this.#options.world.bringUp();
    if (this.#latest === undefined) return;
    const { isServer, ...done } = this.#latest;
    for (const pid of await this.#options.world.strays()) this.#strays.add(pid);
    this.#done.push({ ...done, untilMs: Date.now() + (isServer ? HEARTBEAT_TIMEOUT_MS : 0) });
    this.#latest = undefined;
  }

  /** Keeps the wanted number of jobs on their way. */
  async #fill(): Promise<void> {
    const { world, parallel, name, cancels } = this.#options;
    for (const run of this.#jobs) {
      if (!this.#over.has(run) && (await isOver(world, run))) this.#over.add(run);
    }
    while (this.#jobs.length - this.#over.size < parallel) {
      const run = await startJob(world, `${cancels ? ENDLESS : 'job'}-${name}-${this.#jobs.length + 1}`);
      this.#jobs.push(run);
      this.#people.tell(run, this.#seeded.below(MESSAGE_WITHIN_MS));
    }
  }

  #cancelOne(): void {
    const running = this.#running();
    if (running.length > 0) this.#people.cancel(this.#seeded.pick(running));
  }

  #running(): JobRun[] {
    return this.#jobs.filter((run) => !this.#over.has(run) && !this.#people.isCancelled(run));
  }

  /** Until something has been recorded since the last kill. */
  async #waitForProgress(): Promise<void> {
    const { world } = this.#options;
    const before = this.#bytes();
    const deadline = Date.now() + PROGRESS_WAIT_MS;
    while (this.#bytes() === before && Date.now() < deadline) {
      await this.#fill();
      await sleep(LOOK_EVERY_MS);
    }
    await world.bringUp();
  }

  #bytes(): number {
    return this.#jobs.reduce((sum, run) => sum + transcriptBytes(this.#options.world, run), 0);
  }
}

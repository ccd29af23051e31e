import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../../src/client.ts';
import type { TemporalClient } from '../../src/client.ts';
import { loadConfig } from '../../src/config.ts';
import type { CrashPoint } from '../../src/crash-points.ts';
import { ensureServer, serverStatus, stopServer } from '../../src/server/index.ts';
import type { ServerInfo } from '../../src/server/index.ts';
import { startSimulator } from '../../src/simulator/index.ts';
import type { Play, Simulator, Step } from '../../src/simulator/index.ts';
import { JOB_SCENARIO, jobScenario } from './job.ts';
import type { Target } from './kills.ts';
import { killIfThere, processesOf } from './processes.ts';

const GRACE_MS = 4_000;

/** A home with its own embedded server, supervisor and two workers, all real; only the model is in this process. */
export class World {
  readonly folder: string;
  readonly home: string;
  readonly simulator: Simulator;
  readonly #steps: Steps;
  readonly #crashFolder: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #say: (line: string) => void;
  #temporal: TemporalClient | undefined;

  constructor(folder: string, simulator: Simulator, steps: Steps, say: (line: string) => void) {
    this.folder = folder;
    this.#steps = steps;
    this.home = join(folder, 'home');
    this.simulator = simulator;
    this.#crashFolder = join(folder, 'crash');
    this.#say = say;
    this.#environment = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ERRAND_BWRAP: process.env.ERRAND_BWRAP,
      ERRAND_TEMPORAL_CLI: process.env.ERRAND_TEMPORAL_CLI,
      ERRAND_HOME: this.home,
      ERRAND_MODEL: 'sim-1',
      ERRAND_CRASH_AT: this.#crashFolder,
      ANTHROPIC_BASE_URL: simulator.url,
      ANTHROPIC_API_KEY: 'sk-sweep',
    };
  }

  /** What the model server said to an agent of a job in a turn. */
  said(job: string, role: string, turn: number): Step | undefined {
    return this.#steps.get(stepKey(job, role, turn));
  }

  get temporal(): TemporalClient {
    if (this.#temporal === undefined) throw new Error('the world is not up yet');
    return this.#temporal;
  }

  /** What a person does who finds something down: any command that needs the server brings it up. */
  async bringUp(): Promise<ServerInfo> {
    const info = await ensureServer({
      home: this.home,
      workers: 2,
      graceMs: GRACE_MS,
      environment: this.#environment,
      log: this.#say,
    });
    if (this.#temporal?.address !== info.address) {
      await this.#temporal?.close();
      this.#temporal = await connect(loadConfig({ env: this.#environment }).temporal, info.address);
    }
    return info;
  }

  async isSupervised(): Promise<boolean> {
    return (await serverStatus({ home: this.home })).running;
  }

  /** SIGKILL; true if there was anything to kill. `pick` chooses among the workers. */
  async kill(target: Target, pick: (count: number) => number): Promise<boolean> {
    const { supervisor, server, workers } = await this.#pids();
    const pids = {
      'one worker': () => workers.slice(pick(workers.length)).slice(0, 1),
      'all workers': () => workers,
      supervisor: () => supervisor,
      server: () => server,
      // The supervisor first, since it would start again what it sees dying.
      everything: () => [...supervisor, ...workers, ...server, ...this.#jobSupervisors()],
    }[target]();
    for (const pid of pids) killIfThere(pid);
    return pids.length > 0;
  }

  /** The process that reaches the point as the n-th from now on dies there. */
  arm(point: CrashPoint, nth: number): void {
    const draft = join(this.#crashFolder, `.${point}`);
    writeFileSync(draft, String(this.timesReached(point) + nth));
    renameSync(draft, join(this.#crashFolder, point));
  }

  /** Whether somebody died there; the point is not armed any more. */
  disarm(point: CrashPoint): boolean {
    rmSync(join(this.#crashFolder, point), { force: true });
    const wasTaken = this.isTaken(point);
    rmSync(join(this.#crashFolder, `${point}.taken`), { force: true });
    return wasTaken;
  }

  isTaken(point: CrashPoint): boolean {
    return existsSync(join(this.#crashFolder, `${point}.taken`));
  }

  timesReached(point: CrashPoint): number {
    const file = join(this.#crashFolder, `${point}.reached`);
    return existsSync(file) ? statSync(file).size : 0;
  }

  /** Workers that nobody supervises. One that was started this moment may not be written down yet: looked at twice. */
  async strays(): Promise<number[]> {
    const first = await this.#unsupervised();
    if (first.length === 0) return [];
    await sleep(1_000);
    const second = await this.#unsupervised();
    return first.filter((pid) => second.includes(pid));
  }

  /** Stops everything; answers what is still there then. The folder is kept when `keep` says so. */
  async close(keep: boolean): Promise<string[]> {
    await this.#temporal?.close();
    await stopServer({ home: this.home, log: this.#say });
    await this.simulator.close();
    const left = processesOf(this.folder);
    for (const { pid } of left) killIfThere(pid);
    if (!keep) rmSync(this.folder, { recursive: true, force: true });
    return left.map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
  }

  async #pids(): Promise<{ supervisor: number[]; server: number[]; workers: number[] }> {
    const { instances } = await serverStatus({ home: this.home });
    const there = (pid: number | undefined): number[] => (pid === undefined ? [] : [pid]);
    return {
      supervisor: instances.flatMap(({ supervisorPid }) => there(supervisorPid)),
      server: instances.flatMap(({ temporal }) => there(temporal?.pid)),
      workers: instances.flatMap(({ workers }) => workers.flatMap(({ pid }) => there(pid))),
    };
  }

  async #unsupervised(): Promise<number[]> {
    const running = processesOf(this.folder).filter(({ command }) => /dist\/worker\.js$/.test(command));
    const { workers } = await this.#pids();
    return running.map(({ pid }) => pid).filter((pid) => !workers.includes(pid));
  }

  #jobSupervisors(): number[] {
    const isOne = (command: string): boolean => /jobs\/supervisor\.[jt]s /.test(command);
    return processesOf(this.folder)
      .filter(({ command }) => isOne(command))
      .map(({ pid }) => pid);
  }
}

export async function createWorld(say: (line: string) => void): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'errand-sweep-'));
  mkdirSync(join(folder, 'home'), { mode: 0o700 });
  mkdirSync(join(folder, 'crash'));
  const steps: Steps = new Map();
  const simulator = await startSimulator({ scenarios: { [JOB_SCENARIO]: noting(steps) } });
  return new World(folder, simulator, steps, say);
}

type Steps = Map<string, Step>;

function noting(steps: Steps): Play {
  return (view) => {
    const step = jobScenario(view);
    steps.set(stepKey(view.args.job ?? '', view.args.role ?? '', view.turn), step);
    return step;
  };
}

function stepKey(job: string, role: string, turn: number): string {
  return `${job}/${role}/${turn}`;
}

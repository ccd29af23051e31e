import type { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSameFolder, placeOf, type HomePlace } from '../home.ts';
import { modelServerOf } from '../model-server-id.ts';
import { ownIdentity, type ProcessIdentity } from '../process-identity.ts';
import { listenForRequests, SupervisorStopping, type EnsureRequest, type ServerInfo } from './control.ts';
import type { Instance } from './instance.ts';
import { CONTROL_VERSION, writeState, type InstanceState, type WorkerRecord } from './instance-state.ts';
import { LeftoverWorkers } from './leftover-workers.ts';
import { stopLeftoverServer } from './leftovers.ts';
import { LOOPBACK } from './ports.ts';
import type { SupervisorOptions } from './supervisor-options.ts';
import { NAMESPACE, TemporalServer } from './temporal-server.ts';
import { leftWorkers } from './unrecorded-workers.ts';
import { onWorkerDeath } from './worker-death.ts';
import { WorkerPool, type WantedWorkers } from './worker-pool.ts';

export interface SupervisionOptions {
  readonly options: SupervisorOptions;
  readonly instance: Instance;
  readonly log: (line: string) => void;
  /** Called when the instance's folder was deleted or moved under it: nothing can be found by anybody any more. */
  readonly onHomeGone: () => void;
}

/** How long the end of the server waits for what it is being told of dead workers. */
const REPORT_GRACE_MS = 3_000;

/** One supervisor's server and workers, and everybody who waits for them. */
export class Supervision {
  readonly #instance: Instance;
  readonly #options: SupervisorOptions;
  readonly #log: (line: string) => void;
  readonly #onHomeGone: () => void;
  readonly #self: ProcessIdentity;
  readonly #home: HomePlace | undefined;
  readonly #startedAt = new Date().toISOString();
  readonly #temporal: TemporalServer | undefined;
  readonly #pool: WorkerPool;
  #leftovers: LeftoverWorkers | undefined;
  readonly #listeners = new Set<(line: string) => void>();
  /** Said before anybody listened: the first who asks hears it. */
  #unheard: string[] = [];
  readonly #reports = new Set<Promise<void>>();
  #queue: Promise<unknown> = Promise.resolve();
  #control: Server | undefined;
  #isStopping = false;

  constructor({ options, instance, log, onHomeGone }: SupervisionOptions) {
    this.#self = ownIdentity();
    this.#instance = instance;
    this.#home = placeOf(instance.home);
    this.#options = options;
    this.#log = log;
    this.#onHomeGone = onHomeGone;
    this.#temporal = options.other ? undefined : this.#createTemporal();
    this.#pool = this.#createPool();
  }

  /** Tells the log and everybody who waits. */
  readonly note = (line: string): void => {
    this.#log(line);
    if (this.#listeners.size === 0) this.#unheard.push(line);
    for (const listener of this.#listeners) listener(line);
  };

  /**
   * Ends what a killed supervisor left: its server now, since there may be one only; its workers in their own time, in
   * the state file until they are gone. The server hears of each end: it would find out by time-outs.
   */
  async takeOver(state: InstanceState | undefined): Promise<void> {
    this.#leftovers = new LeftoverWorkers({
      workers: leftWorkers(this.#instance, state),
      graceMs: this.#options.graceMs,
      log: this.note,
      onGone: (worker) => this.#forget(worker),
    });
    await this.#leftovers.whenHandedOver();
    await stopLeftoverServer({ instance: this.#instance, state, log: this.note });
  }

  /** Starts everything. Does not wait for it: whoever needs it asks, and is told then. */
  async begin(): Promise<void> {
    if (this.#isStopping) return;
    this.#temporal?.begin();
    this.#control = await listenForRequests(this.#instance.control, (request, log) => this.#answer(request, log));
    this.#save();
    const { command, buildId, count } = this.#options;
    this.#inTurn(() =>
      this.#ensure({ type: 'ensure', command, buildId, count, environment: { ...process.env } }),
    ).catch((error: Error) => this.#log(error.message));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#control?.close();
    await Promise.all([this.#pool.stop(), this.#leftovers?.whenGone()]);
    // What a killed worker held is handed over now, or the next start waits for its time-outs.
    await Promise.race([Promise.all(this.#reports), sleep(REPORT_GRACE_MS)]);
    await this.#temporal?.stop();
  }

  async #answer(request: EnsureRequest, log: (line: string) => void): Promise<ServerInfo> {
    for (const line of this.#unheard.splice(0)) log(line);
    this.#listeners.add(log);
    try {
      return await this.#inTurn(() => this.#ensure(request));
    } catch (error) {
      throw this.#isStopping ? new SupervisorStopping() : error;
    } finally {
      this.#listeners.delete(log);
    }
  }

  // One at a time: two callers with different wishes are served one after the other, never half each.
  #inTurn<Result>(step: () => Promise<Result>): Promise<Result> {
    const turn = this.#queue.then(step, step);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #ensure(request: EnsureRequest): Promise<ServerInfo> {
    await this.#temporal?.whenReady();
    await this.#pool.ensure(this.#toWanted(request), this.note);
    return this.#info();
  }

  #toWanted({ command, buildId, count, environment }: EnsureRequest): WantedWorkers {
    const known = this.#pool.wanted;
    return {
      command,
      buildId,
      count: count ?? known?.count ?? this.#options.count,
      environment: environment ?? known?.environment ?? process.env,
      embeddedAddress: this.#temporal?.address,
    };
  }

  #createTemporal(): TemporalServer {
    const { cli } = this.#options;
    if (cli === undefined) throw new Error('No Temporal CLI was given for the embedded server.');
    const onChange = () => this.#save();
    return new TemporalServer({
      instance: this.#instance,
      cli,
      log: this.note,
      onChange,
      onReady: () => this.#follow(),
    });
  }

  #createPool(): WorkerPool {
    return new WorkerPool({
      instance: this.#instance,
      graceMs: this.#options.graceMs,
      log: this.note,
      onChange: () => this.#save(),
      onDeath: ({ identity, cause }) => this.#report(identity, cause),
    });
  }

  #forget({ identity }: WorkerRecord): void {
    if (this.#control !== undefined) this.#save();
    if (identity !== '') this.#report(identity, 'was left by a killed supervisor and is gone');
  }

  #report(identity: string, cause: string): void {
    const told = this.#tellServer(identity, cause)
      .catch((error: Error) => this.note(`the server was not told of the death of ${identity}: ${error.message}`))
      .finally(() => this.#reports.delete(told));
    this.#reports.add(told);
  }

  async #tellServer(identity: string, cause: string): Promise<void> {
    // Before its first start nobody knows where the embedded server will be.
    if (this.#temporal?.address === undefined) await this.#temporal?.whenReady();
    const environment = this.#pool.wanted?.environment ?? process.env;
    const address = this.#temporal?.address;
    await onWorkerDeath({ identity, cause, home: this.#instance.home, address, environment, log: this.note });
  }

  // The server came back. If a stranger took its port meanwhile it has another address, and the workers must learn it.
  #follow(): void {
    const wanted = this.#pool.wanted;
    const embeddedAddress = this.#temporal?.address;
    if (wanted === undefined || wanted.embeddedAddress === embeddedAddress) return;
    this.#inTurn(() => this.#pool.ensure({ ...wanted, embeddedAddress }, this.note)).catch((error: Error) =>
      this.note(error.message),
    );
  }

  #info(): ServerInfo {
    const { temporal, workers, ports, address, ...state } = this.#toState();
    const pids = {
      supervisor: this.#self.pid,
      temporal: temporal?.process?.pid,
      workers: workers.flatMap((worker) => (worker.phase === 'ready' ? (worker.process?.pid ?? []) : [])),
    };
    return {
      address: address ?? '',
      namespace: state.namespace,
      uiUrl: ports && `http://${LOOPBACK}:${ports.ui}`,
      embedded: state.embedded,
      buildId: this.#pool.wanted?.buildId ?? this.#options.buildId,
      logs: this.#instance.logs,
      pids,
    };
  }

  #toState(): InstanceState {
    const { other } = this.#options;
    return {
      controlVersion: CONTROL_VERSION,
      supervisor: this.#self,
      home: this.#home,
      startedAt: this.#startedAt,
      control: this.#instance.control,
      embedded: other === undefined,
      address: other?.address ?? this.#temporal?.address,
      namespace: other?.namespace ?? NAMESPACE,
      ports: this.#temporal?.ports,
      temporal: this.#temporal?.record,
      modelServer: this.#pool.wanted && modelServerOf(this.#pool.wanted.environment),
      workers: [...this.#pool.records, ...(this.#leftovers?.records ?? [])],
    };
  }

  // Without this file a killed supervisor's processes could not be found, so a full or read-only disk is waited out.
  #save(): void {
    try {
      // Another folder at this path is somebody else's: what is written there would be believed.
      if (!isSameFolder(placeOf(this.#instance.home), this.#home)) return this.#onHomeGone();
      writeState(this.#instance, this.#toState());
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      if (code === 'ENOENT') return this.#onHomeGone();
      if (!['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(code)) throw error;
      if (!this.#isStopping) setTimeout(() => this.#save(), 1000).unref();
    }
  }
}

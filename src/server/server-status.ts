import { resolve } from 'node:path';
import { isAlive } from '../process-identity.ts';
import { allInstances, type Instance } from './instance.ts';
import { readState, type ProcessPhase, type ProcessRecord } from './instance-state.ts';
import { readLock } from './life-lock.ts';
import { LOOPBACK, type ServerPorts } from './ports.ts';
import { homeTrouble, type HomeTrouble } from './whose-home.ts';

export interface ProcessStatus {
  readonly name: string;
  /** Undefined while it is down. */
  readonly pid?: number;
  readonly phase: ProcessPhase;
  readonly uptimeMs?: number;
  readonly restarts: number;
}

export interface WorkerStatus extends ProcessStatus {
  readonly identity: string;
  readonly buildId: string;
}

/** One server and its workers. `running` is false for what a killed supervisor left: "errand up" takes it over. */
export interface InstanceStatus {
  readonly running: boolean;
  readonly embedded: boolean;
  readonly address?: string;
  readonly namespace: string;
  readonly uiUrl?: string;
  readonly ports?: ServerPorts;
  readonly supervisorPid?: number;
  readonly uptimeMs?: number;
  readonly temporal?: ProcessStatus;
  /** Which model server the workers ask, or asked last. */
  readonly modelServer?: string;
  readonly workers: readonly WorkerStatus[];
  /** Builds of the workers, normally one. */
  readonly buildIds: readonly string[];
  readonly logs: string;
}

export interface ServerStatus {
  /** Whether anything of this home is supervised now. */
  readonly running: boolean;
  readonly instances: readonly InstanceStatus[];
  /** Present when what runs is not this home's, or it was moved meanwhile. Of a copy no instance is told. */
  readonly trouble?: HomeTrouble;
}

/** What runs of this home, by its files and the process table. Asks nobody and starts nothing. */
export async function serverStatus({ home }: { home: string }): Promise<ServerStatus> {
  const trouble = homeTrouble(resolve(home));
  const own = trouble?.kind === 'copy' ? [] : allInstances(resolve(home));
  const instances = own.flatMap((instance) => instanceStatus(instance) ?? []);
  return { running: instances.some(({ running }) => running), instances, ...(trouble && { trouble }) };
}

function instanceStatus(instance: Instance): InstanceStatus | undefined {
  const state = readState(instance);
  if (state === undefined) return undefined;
  const running = readLock(instance.lock)?.pid === state.supervisor.pid;
  const workers = state.workers.map((worker) => ({
    ...processStatus(worker),
    identity: worker.identity,
    buildId: worker.buildId,
  }));
  return {
    running,
    embedded: state.embedded,
    address: state.address,
    namespace: state.namespace,
    uiUrl: state.ports && `http://${LOOPBACK}:${state.ports.ui}`,
    ports: state.ports,
    supervisorPid: running ? state.supervisor.pid : undefined,
    uptimeMs: running ? sinceMs(state.startedAt) : undefined,
    temporal: state.temporal && processStatus(state.temporal),
    modelServer: state.modelServer,
    workers,
    buildIds: [...new Set(workers.map(({ buildId }) => buildId))],
    logs: instance.logs,
  };
}

function processStatus({ name, process, phase, startedAt, restarts }: ProcessRecord): ProcessStatus {
  const lives = process !== undefined && isAlive(process);
  if (!lives) return { name, phase: phase === 'ready' ? 'stopped' : phase, restarts };
  return {
    name,
    pid: process.pid,
    phase,
    uptimeMs: startedAt === undefined ? undefined : sinceMs(startedAt),
    restarts,
  };
}

function sinceMs(time: string): number {
  // The clock may have been set back since.
  return Math.max(0, Date.now() - Date.parse(time));
}

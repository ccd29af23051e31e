import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { HomePlace } from '../home.ts';
import { isSameProcess, toProcessIdentity, type ProcessIdentity } from '../process-identity.ts';
import type { Instance } from './instance.ts';
import { readLock } from './life-lock.ts';
import type { ServerPorts } from './ports.ts';

/** What CLI and supervisor say to each other; a supervisor that speaks another version is replaced. */
export const CONTROL_VERSION = 1;

export type ProcessPhase = 'starting' | 'ready' | 'draining' | 'stopped';

/** One process under a supervisor, as it is kept in the state file. */
export interface ProcessRecord {
  readonly name: string;
  /** Undefined while it is down. */
  readonly process?: ProcessIdentity;
  readonly phase: ProcessPhase;
  readonly startedAt?: string;
  readonly restarts: number;
}

export interface WorkerRecord extends ProcessRecord {
  /** The name the worker has at the Temporal server; another one after each start. */
  readonly identity: string;
  readonly buildId: string;
}

/** Written by the supervisor at every change. It outlives a killed supervisor: that is how what it left is found. */
export interface InstanceState {
  readonly controlVersion: number;
  readonly supervisor: ProcessIdentity;
  /** The home these processes serve; missing in the file of an earlier errand. */
  readonly home?: HomePlace;
  readonly startedAt: string;
  readonly control: string;
  readonly embedded: boolean;
  readonly address?: string;
  readonly namespace: string;
  readonly ports?: ServerPorts;
  readonly temporal?: ProcessRecord;
  /** Which model server the workers ask: its address, without key or user. */
  readonly modelServer?: string;
  readonly workers: readonly WorkerRecord[];
}

/** The state as last written, its supervisor dead or alive; undefined if there is none, or a power cut spoiled it. */
export function readState(instance: Instance): InstanceState | undefined {
  try {
    const state = JSON.parse(readFileSync(instance.state, 'utf8')) as InstanceState | null;
    return state ? withIdentities(state) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The state of a supervisor that lives and has written it; undefined otherwise. */
export function readLiveState(instance: Instance): InstanceState | undefined {
  const holder = readLock(instance.lock);
  const state = holder && readState(instance);
  return holder && state && isSameProcess(state.supervisor, holder) ? state : undefined;
}

/** Replaces the state file in one step, so that no reader ever sees half of it. */
export function writeState(instance: Instance, state: InstanceState): void {
  const draft = `${instance.state}.draft`;
  writeFileSync(draft, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, instance.state);
}

/** Brings the identities of an earlier errand's file into today's spelling. */
function withIdentities(state: InstanceState): InstanceState {
  const { supervisor, temporal, workers } = state;
  return {
    ...state,
    supervisor: toProcessIdentity(supervisor) ?? supervisor,
    ...(temporal ? { temporal: withIdentity(temporal) } : {}),
    workers: workers.map(withIdentity),
  };
}

function withIdentity<Kept extends ProcessRecord>(record: Kept): Kept {
  return { ...record, process: toProcessIdentity(record.process) };
}

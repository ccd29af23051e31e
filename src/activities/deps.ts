import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { JobCeilings } from '../jobs/ceilings.ts';
import type { ModelClient } from '../model/model.ts';
import type { Policy } from '../policy/policy.ts';
import type { SandboxHost } from '../sandbox/host.ts';

/** What a worker gives its activities. */
export interface ActivityDeps {
  readonly home: string;
  readonly client: Client;
  readonly namespace: string;
  /** Identity of the server, so that a run of another server is never called lost. */
  readonly clusterId: string;
  readonly model: ModelClient;
  /** Which server `model` asks, as runs name theirs. */
  readonly modelServer: string;
  /** The worker's own ceiling; every activity narrows the agent's policy by it. */
  readonly ceiling: Policy;
  /** How many agents one run, and one turn of it, may start. */
  readonly caps: { readonly total: number; readonly perTurn: number };
  readonly sandbox: SandboxHost;
  /** What all processes of one command may take together. */
  readonly commandCeilings: JobCeilings;
  /** Aborted as soon as the worker is told to end, with the failure that hands an attempt over. */
  readonly shutdown: AbortSignal;
  /** Aborted when the time is over that open calls get to finish after that. */
  readonly handOver: AbortSignal;
  readonly log: Logger;
}

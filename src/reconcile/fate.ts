import { WorkflowNotFoundError, type Client } from '@temporalio/client';

/** A Temporal server, named in a way that stays the same over restarts and differs from any other one. */
export interface NamedServer {
  readonly client: Client;
  readonly namespace: string;
  readonly clusterId: string;
}

/** Asks a server for its name. */
export async function nameServer(client: Client, namespace: string): Promise<NamedServer> {
  const { clusterId } = await client.workflowService.getClusterInfo({});
  return { client, namespace, clusterId: clusterId ?? '' };
}

/** An agent by what its transcript says of its workflow. */
export interface AgentWorkflow {
  readonly workflowId: string;
  readonly clusterId: string;
  readonly namespace: string;
  /** When its transcript was last written to. */
  readonly lastWriteMs: number;
}

/** What the server says of an agent's workflow. */
export type Fate =
  | { readonly kind: 'open' }
  /** `status`: TERMINATED, FAILED, … */
  | { readonly kind: 'closed'; readonly status: string }
  /** It should still be known, so it is gone for good. */
  | { readonly kind: 'forgotten' }
  /** This server cannot tell: the agent is another server's, or older than what is kept of closed workflows. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** Asks the server what became of an agent's workflow; throws when it cannot be reached. */
export async function fateOf(server: NamedServer, agent: AgentWorkflow): Promise<Fate> {
  if (agent.clusterId !== server.clusterId || agent.namespace !== server.namespace)
    return { kind: 'unknown', reason: `it was started on another server (namespace ${agent.namespace})` };
  try {
    const { status } = await server.client.workflow.getHandle(agent.workflowId).describe();
    return OPEN_STATUSES.has(status.name) ? { kind: 'open' } : { kind: 'closed', status: status.name };
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return whenNotFound(agent, await retentionMs(server));
  }
}

const OPEN_STATUSES: ReadonlySet<string> = new Set(['RUNNING', 'PAUSED', 'CONTINUED_AS_NEW']);

function whenNotFound({ lastWriteMs }: AgentWorkflow, keptMs: number): Fate {
  if (Date.now() - lastWriteMs < keptMs) return { kind: 'forgotten' };
  return { kind: 'unknown', reason: `the server keeps closed workflows for ${Math.round(keptMs / 3600_000)} h only` };
}

async function retentionMs({ client, namespace }: NamedServer): Promise<number> {
  const { config } = await client.workflowService.describeNamespace({ namespace });
  return Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) * 1000;
}

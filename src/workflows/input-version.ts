import { agentRejected } from '../failures.ts';
import { AGENT_INPUT_VERSION } from '../protocol.ts';
import type { AgentInput } from '../protocol.ts';

/**
 * Leaves an agent alone whose input means something that this worker does not know. A new one is refused at once, since
 * nothing has been done yet. One that a newer worker has brought this far waits: the task fails until such a worker
 * takes it again.
 */
export function assertKnownVersion({ v = 1, agentId, carried }: AgentInput): void {
  if (v <= AGENT_INPUT_VERSION) return;
  const what = `agent ${agentId} has input of version ${v}, this worker knows ${AGENT_INPUT_VERSION}`;
  const next = 'start workers of the newer errand (errand up with it), and end the older ones';
  if (carried === undefined) throw agentRejected(`${what}; ${next}`);
  throw new Error(`${what}; the agent waits: ${next}`);
}

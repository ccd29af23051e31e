import { workflowInfo } from '@temporalio/workflow';
import type { AgentInput, AgentRef } from '../protocol.ts';

/** Which records are this agent's. */
export function toRef(input: AgentInput): AgentRef {
  const { runId, originalExecutionRunId } = workflowInfo();
  // A deliberate reset gets a new run id but keeps its started event; from then on its records form a branch.
  const branch = runId === originalExecutionRunId ? (input.carried?.branch ?? '') : runId;
  return { runId: input.runId, agentId: input.agentId, transcript: input.transcript, epoch: input.epoch, branch };
}

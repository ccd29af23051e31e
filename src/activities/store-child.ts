import { planChild } from '../agents/child.ts';
import type { AgentType } from '../agents/agent-type.ts';
import { storeStartingObjects } from '../agents/starting-objects.ts';
import type { Policy } from '../policy/policy.ts';
import type { TaskCall } from '../protocol.ts';
import { claimSlot } from '../store/ledger.ts';
import { putObject } from '../store/objects.ts';
import { TOOL_NAMES } from '../tools/index.ts';
import type { TaskInput } from '../tools/task.ts';
import type { AgentFiles } from './agent-files.ts';
import { loadObject } from './agent-files.ts';
import type { ReplyDraft } from './calls.ts';
import type { ActivityDeps } from './deps.ts';

interface TaskRequest {
  readonly reply: ReplyDraft;
  readonly index: number;
  /** Counts the `task` calls of the reply from 0. */
  readonly ordinal: number;
  readonly input: TaskInput;
}

/**
 * Settles what a child will be, while the reply that asks for it is recorded, and stores what it starts from. The
 * workflow gets hashes only. The policy is narrowed from the parent's stored one, not from this worker's view of it: the
 * ceiling is applied wherever something is done.
 */
export async function storeChild(
  deps: ActivityDeps,
  files: AgentFiles,
  parentType: AgentType,
  { reply, index, ordinal, input }: TaskRequest,
): Promise<TaskCall | { readonly problem: string }> {
  const { meta, ref } = files;
  const plan = planChild({
    parentAgentId: ref.agentId,
    parentPolicy: await loadObject<Policy>(deps, ref, meta.objects.policy),
    parentHops: meta.hops,
    parentDepth: meta.depth,
    parentType,
    replyRecordId: reply.id,
    callIndex: index,
    input,
    knownTools: TOOL_NAMES,
    model: meta.model,
    limits: meta.limits,
    trace: meta.trace,
    workspace: meta.workspace,
  });
  if ('problem' in plan) return plan;
  if (ordinal >= deps.caps.perTurn) return { problem: tooMany(`one turn may start ${deps.caps.perTurn}`) };
  if (plan.needsApproval)
    return {
      problem: "Starting an agent needs a person's consent, and nobody can be asked in this run. Do the work yourself.",
    };
  if (!(await claimSlot(deps.home, ref.transcript, plan.agentId, deps.caps.total))) {
    return { problem: tooMany(`this run may start ${deps.caps.total} in all`) };
  }
  const objects = await storeStartingObjects(plan, meta.workspace, (data) =>
    putObject(deps.home, ref.transcript, data),
  );
  return {
    agentId: plan.agentId,
    agentType: plan.agentType.name,
    description: plan.description,
    hops: plan.hops,
    objects,
    limits: plan.limits,
    model: plan.model,
    spanId: plan.spanId,
  };
}

function tooMany(limit: string): string {
  return `Not started: no more agents, ${limit}. Do the work yourself, or wait for those that run and give it again.`;
}

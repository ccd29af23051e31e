import { createHash } from 'node:crypto';
import { decide, decisionText, offeredTools } from '../policy/decide.ts';
import { whyNotWithin } from '../policy/narrow.ts';
import type { Policy } from '../policy/policy.ts';
import type { AgentLimits, TraceContext } from '../protocol.ts';
import type { TaskInput } from '../tools/task.ts';
import { DEFAULT_AGENT_TYPE, TASK_TOOL } from '../tools/task.ts';
import type { AgentType } from './agent-type.ts';
import { findAgentType } from './agent-type.ts';
import { builtInAgentTypes } from './built-in.ts';
import { DO_IT_YOURSELF, hopsBelow, list, modelOf, policyOf, poolOf, problem, typed } from './child-policy.ts';

/** The parent, its call, and what the host knows. Nothing of it but `input` comes from the model. */
export interface ChildRequest {
  readonly parentAgentId: string;
  readonly parentPolicy: Policy;
  /** Hops of the parent's own input. */
  readonly parentHops: number;
  readonly parentDepth: number;
  readonly parentType: AgentType;
  /** Id of the reply record that asked for the child, and which of its calls did. */
  readonly replyRecordId: string;
  readonly callIndex: number;
  readonly input: TaskInput;
  /** Every tool this worker has, in the order in which they are offered. */
  readonly knownTools: readonly string[];
  /** Types that may be started. Default: the built-in ones. */
  readonly types?: readonly AgentType[];
  /** The parent's model. */
  readonly model: string;
  /** The parent's limits. */
  readonly limits: AgentLimits;
  /** The parent's trace. */
  readonly trace: TraceContext;
  /** Folder that relative patterns of the type's rules start from. */
  readonly workspace: string;
}

/** All that a child is and may do. */
export interface ChildPlan {
  readonly agentId: string;
  readonly spanId: string;
  readonly trace: TraceContext;
  readonly description: string;
  readonly depth: number;
  readonly hops: number;
  readonly policy: Policy;
  readonly agentType: AgentType;
  readonly model: string;
  readonly limits: AgentLimits;
  /** What the child is offered, in the order of `knownTools`. */
  readonly tools: readonly string[];
  readonly canSpawn: boolean;
  /** The parent's policy wants a person's consent before it starts. */
  readonly needsApproval: boolean;
}

/** Why there will be no child, in words for the model: what is wrong and what would be right. */
export interface ChildProblem {
  readonly problem: string;
}

/**
 * The one place that decides what a child may be. Inherited: the policy (narrowed), the limits (at most), the model
 * unless the type names another, the trace, the workspace. Fresh, and therefore not mentioned in the result:
 * - history: the child was given a task, not a conversation; the parent's would cost tokens and mislead it;
 * - read set: it has seen no file yet, so it must read before it edits, however well the parent knows the file;
 * - todo list: the parent's plan is not the child's, and its ticks must not appear in the parent's list;
 * - denial counter: it has not been told no yet, and its denials must not stop the parent;
 * - turn count: it has its own work to do; the parent's turns go on counting by themselves.
 */
export function planChild(request: ChildRequest): ChildPlan | ChildProblem {
  const types = request.types ?? builtInAgentTypes;
  const wantedType = request.input.agent_type ?? DEFAULT_AGENT_TYPE;
  const type = findAgentType(types, wantedType);
  if (!type)
    return problem(
      `There is no agent type ${JSON.stringify(wantedType)}. Valid: ${list(types.map(({ name }) => name))}.`,
    );
  const consent = consentTo(request, type);
  if ('problem' in consent) return consent;
  const tools = poolOf(request, type);
  if ('problem' in tools) return tools;
  const model = modelOf(request, type);
  if (typeof model !== 'string') return model;
  const policy = policyOf(request, type, tools.pool);
  const offered = offeredTools(policy, request.knownTools);
  if (offered.length === 0) return problem(`${typed(type)} would have no tool that it may use. ${DO_IT_YOURSELF}`);
  return {
    ...identityOf(request),
    description: request.input.description,
    depth: request.parentDepth + 1,
    hops: policy.hops,
    policy,
    agentType: type,
    model,
    limits: { ...request.limits, ...policy.limits },
    tools: offered,
    canSpawn: offered.includes(TASK_TOOL),
    needsApproval: consent.verdict === 'ask',
  };
}

/** An agent as its start record or its input describes it. */
export interface Standing {
  readonly policy: Policy;
  readonly hops: number;
  readonly depth?: number;
}

/**
 * The last refusal, where a child starts: whatever led there, it may not exceed its parent. Answers what is wrong, or
 * undefined.
 */
export function checkChild({ parent, child }: { parent: Standing; child: Standing }): string | undefined {
  const hops = hopsBelow(parent.policy, parent.hops);
  if (hops === undefined) return `no more levels may be spawned below the parent (hops ${parent.hops})`;
  if (!Number.isInteger(child.hops) || child.hops < 0 || child.hops > hops)
    return `hops ${child.hops} where at most ${hops} are left`;
  if (child.policy.hops > hops) return `policy hops ${child.policy.hops} where at most ${hops} are left`;
  if (parent.depth !== undefined && child.depth !== parent.depth + 1) {
    return `depth ${child.depth} below a parent at depth ${parent.depth}`;
  }
  if (!offeredTools(parent.policy, [TASK_TOOL]).includes(TASK_TOOL)) return 'the parent may not delegate';
  const wider = whyNotWithin(child.policy, parent.policy);
  return wider && `its policy exceeds its parent's: ${wider}`;
}

function consentTo(request: ChildRequest, type: AgentType): ChildProblem | { readonly verdict: 'ask' | 'allow' } {
  const { parentPolicy, parentHops, parentType } = request;
  if (hopsBelow(parentPolicy, parentHops) === undefined) {
    return problem(`No more levels may be spawned below this agent. ${DO_IT_YOURSELF}`);
  }
  if (!parentType.canSpawn) return problem(`An agent of type ${parentType.name} may not delegate. ${DO_IT_YOURSELF}`);
  const decision = decide(parentPolicy, { tool: TASK_TOOL, access: 'spawn', agentType: type.name });
  return decision.verdict === 'deny' ? problem(decisionText(decision)) : { verdict: decision.verdict };
}

/** Derived, not drawn: the same call names the same child, whichever attempt stores the reply. */
function identityOf(request: ChildRequest): Pick<ChildPlan, 'agentId' | 'spanId' | 'trace'> {
  const call = [request.parentAgentId, request.replyRecordId, request.callIndex];
  const spanId = digest(['span', ...call]).slice(0, 16);
  return {
    agentId: digest(call).slice(0, 12),
    spanId,
    trace: { traceId: request.trace.traceId, spanId, parentSpanId: request.trace.spanId },
  };
}

function digest(parts: readonly (string | number)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

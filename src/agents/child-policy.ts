import { narrow, intersectNames } from '../policy/narrow.ts';
import { CHILD_MAX_TURNS, CHILD_TIMEOUT_MS } from '../policy/defaults.ts';
import type { Layer, Policy } from '../policy/policy.ts';
import { ANY_NAME, builtInTool, ruleName } from '../policy/tool-names.ts';
import { TASK_TOOL } from '../tools/task.ts';
import type { AgentType } from './agent-type.ts';
import type { ChildProblem, ChildRequest } from './child.ts';

/** The parent's pool, what the type has of it, and what the call left of that. */
export function poolOf(request: ChildRequest, type: AgentType): ChildProblem | { readonly pool: readonly string[] } {
  const { knownTools, input, parentPolicy } = request;
  const typeTools = toolsOf(type, knownTools);
  const unknown = typeTools.filter((name) => name !== ANY_NAME && !knownTools.includes(name));
  if (unknown.length > 0) {
    return problem(`Agent type ${type.name} names unknown tools: ${list(unknown)}. Valid: ${list(knownTools)}.`);
  }
  const available = intersectNames(intersectNames(knownTools, parentPolicy.tools), typeTools).filter(
    (name) => name !== TASK_TOOL || maySpawn(request, type),
  );
  if (available.length === 0)
    return problem(`${typed(type)} would have no tools here. Choose another type. ${DO_IT_YOURSELF}`);
  return input.tool_names ? namedTools(input.tool_names, available, request) : { pool: available };
}

function toolsOf(type: AgentType, knownTools: readonly string[]): readonly string[] {
  return type.tools === 'all' ? [ANY_NAME] : type.tools.map((name) => toolIn(knownTools, name) ?? name);
}

/** A tool that exists but is not for this child is named as such: the model would otherwise try other spellings. */
function namedTools(
  names: readonly string[],
  available: readonly string[],
  { knownTools }: ChildRequest,
): ChildProblem | { readonly pool: readonly string[] } {
  const wanted = names.map((name) => toolIn(knownTools, name) ?? name);
  const missing = wanted.filter((name) => !available.includes(name));
  if (missing.length === 0) return { pool: intersectNames(available, wanted) };
  const unknown = missing.some((name) => !knownTools.includes(name));
  const reason = unknown ? 'unknown tools' : 'tools that this agent would not have';
  return problem(`tool_names has ${reason}: ${list(missing)}. Valid: ${list(available)}.`);
}

export function policyOf(request: ChildRequest, type: AgentType, pool: readonly string[]): Policy {
  const { parentPolicy, parentHops } = request;
  const below = hopsBelow(parentPolicy, parentHops) ?? 0;
  return narrow(parentPolicy, {
    layers: layersOf(request, type, pool),
    tools: pool,
    hops: pool.includes(TASK_TOOL) ? below : 0,
    limits: { maxTurns: type.maxTurns ?? CHILD_MAX_TURNS, timeoutMs: type.timeoutMs ?? CHILD_TIMEOUT_MS },
    ...(type.sandbox && { sandbox: type.sandbox }),
  });
}

/**
 * Rules that say on whose account something is missing, so that a refusal far below can name it: the type that has no
 * such tool, or the ancestor that did not hand it on.
 */
function layersOf(request: ChildRequest, type: AgentType, pool: readonly string[]): Layer[] {
  const { parentAgentId, parentPolicy, knownTools, workspace } = request;
  const had = intersectNames(knownTools, parentPolicy.tools);
  const ofType = intersectNames(had, toolsOf(type, knownTools));
  const { deny = [], ask = [], allow = [] } = type.rules ?? {};
  const typeDenies = [...deny, ...withheld(had, ofType)];
  return [
    { owner: `type:${type.name}`, base: workspace, deny: typeDenies, ask, allow },
    { owner: `agent:${parentAgentId}`, deny: withheld(ofType, pool), ask: [], allow: [] },
  ];
}

/** `task` goes by hops. A rule against Read would close the other file tools, too, so there the pool has to do. */
function withheld(before: readonly string[], after: readonly string[]): string[] {
  const missing = before.filter((name) => !after.includes(name) && name !== TASK_TOOL && name !== 'read');
  return missing.filter((name) => builtInTool(name) === name).map(ruleName);
}

function maySpawn({ parentPolicy, parentHops }: ChildRequest, type: AgentType): boolean {
  return type.canSpawn && (hopsBelow(parentPolicy, parentHops) ?? 0) > 0;
}

export function modelOf({ parentPolicy, model }: ChildRequest, type: AgentType): ChildProblem | string {
  const wanted = type.model ?? model;
  if (wanted === model || wanted === 'inherit') return model;
  if (intersectNames(parentPolicy.models, [wanted]).length > 0) return wanted;
  return problem(`Agent type ${type.name} wants model ${wanted}, this run may ask: ${list(parentPolicy.models)}.`);
}

/** Hops of a child, or undefined when there may be none. Both numbers bind: the input's and the policy's. */
export function hopsBelow(policy: Policy, hops: number): number | undefined {
  const own = Math.min(policy.hops, hops);
  return own > 0 ? own - 1 : undefined;
}

function toolIn(known: readonly string[], name: string): string | undefined {
  return known.find((tool) => tool === name) ?? known.find((tool) => tool === builtInTool(name));
}

/** How a refusal to delegate ends: models follow it better than a bare no. */
export const DO_IT_YOURSELF = 'Do the work yourself.';

export function typed(type: AgentType): string {
  return `An agent of type ${type.name}`;
}

export function list(names: readonly string[]): string {
  return names.join(', ');
}

export function problem(text: string): ChildProblem {
  return { problem: text };
}

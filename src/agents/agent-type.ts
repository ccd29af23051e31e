import type { SandboxMode } from '../policy/policy.ts';
import { plainName } from '../policy/tool-names.ts';

/** Rules of an agent type; they become the layer `type:<name>` of every agent of it. */
export interface AgentTypeRules {
  readonly deny?: readonly string[];
  readonly ask?: readonly string[];
  readonly allow?: readonly string[];
}

/** A kind of agent. Plain data: it is stored once per run and never changes under a running agent. */
export interface AgentType {
  readonly name: string;
  /** For the model that chooses a type: when to use it. */
  readonly description: string;
  /** Body of the system prompt. */
  readonly prompt: string;
  /** `all`: whatever the parent has. An empty list is an agent that can do nothing, and is refused. */
  readonly tools: readonly string[] | 'all';
  /** Whether its agents may delegate in turn, as far as hops are left. */
  readonly canSpawn: boolean;
  /** Default 30 for a child, 200 for a root; never more than the parent's. */
  readonly maxTurns?: number;
  /** Default 2 h for a child, 7 days for a root; never more than the parent's. */
  readonly timeoutMs?: number;
  /** Default: the parent's. Must be one the run may ask. */
  readonly model?: string;
  /** The most its agents may do, whatever the parent may. */
  readonly sandbox?: SandboxMode;
  readonly rules?: AgentTypeRules;
}

/** The type a name stands for; case and separators do not count. */
export function findAgentType(types: readonly AgentType[], name: string): AgentType | undefined {
  return types.find((type) => type.name === name) ?? types.find((type) => plainName(type.name) === plainName(name));
}

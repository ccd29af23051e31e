/** What an agent may do: frozen, canonical data that only ever narrows on the way down. */

export const SANDBOX_MODES = ['read-only', 'workspace-write', 'full-access'] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export type Verdict = 'deny' | 'ask' | 'allow';

/** Rules of one author. A layer without a matching rule abstains. */
export interface Layer {
  /** `ceiling`, `user`, `workspace`, `type:<agent type>` or `agent:<agentId>`. */
  readonly owner: string;
  /** Folder that relative path patterns start from. */
  readonly base?: string;
  readonly deny: readonly string[];
  readonly ask: readonly string[];
  readonly allow: readonly string[];
}

export interface PolicyLimits {
  readonly maxTurns: number;
  readonly timeoutMs: number;
}

export interface Policy {
  readonly version: 1;
  /** Sorted and without duplicates, so that equal policies have equal bytes. */
  readonly layers: readonly Layer[];
  readonly sandbox: SandboxMode;
  /** Absolute real paths the tools may touch. */
  readonly roots: readonly string[];
  /** Whether bash may use the network. */
  readonly network: boolean;
  readonly approvals: 'ask' | 'deny';
  /** Names of the tools in the pool, sorted; `['*']` stands for all. */
  readonly tools: readonly string[];
  /** Models that may be asked, sorted; `['*']` stands for all. */
  readonly models: readonly string[];
  readonly hops: number;
  readonly limits: PolicyLimits;
  /** Whether `task` needs a person. */
  readonly spawn: Verdict;
}

/** What a child is meant to have; a missing field means "as the parent". A whole policy is one, too. */
export interface Wanted {
  readonly layers?: readonly Layer[];
  readonly sandbox?: SandboxMode;
  readonly roots?: readonly string[];
  readonly network?: boolean;
  readonly approvals?: 'ask' | 'deny';
  readonly tools?: readonly string[];
  readonly models?: readonly string[];
  readonly hops?: number;
  readonly limits?: Partial<PolicyLimits>;
  readonly spawn?: Verdict;
}

/** One thing an agent wants to do, on real paths. */
export interface Action {
  readonly tool: string;
  readonly access: 'read' | 'write' | 'execute' | 'spawn' | 'plan';
  /** Absolute real path of what is touched. */
  readonly path?: string;
  /** Shell command line. */
  readonly command?: string;
  /** Agent type that is to be spawned. */
  readonly agentType?: string;
}

export interface Decision {
  readonly verdict: Verdict;
  /** The rule that decided, or the mode when all layers abstained. */
  readonly rule: string;
  /** Whose rule it is. */
  readonly owner: string;
  /** A rule of a layer, or one of the policy's own limits. */
  readonly by: 'rule' | 'mode' | 'pool' | 'roots' | 'protected' | 'spawn';
  /** It was an `ask`, but this run asks nobody: counts as denied, and asking again is pointless. */
  readonly unanswered?: true;
}

import { canonicalPolicy } from './canonical.ts';
import { patternForPath } from './path-pattern.ts';
import type { Layer, Policy, SandboxMode, Verdict } from './policy.ts';
import { ANY_NAME, BUILT_IN_TOOLS } from './tool-names.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Levels that may be spawned below a root when nothing else is said: it, its children, and theirs. */
export const DEFAULT_HOPS = 2;

/** No run gets more levels, whatever it asks for. */
export const MAX_HOPS = 5;

/** Enough for days of work; a root that needs more is more likely going round in circles. */
export const ROOT_MAX_TURNS = 200;

/** A child has one task. A type may set another number, up to its parent's. */
export const CHILD_MAX_TURNS = 30;

/** A root works for days at most: a week covers a long job with weekends of waiting for a rate limit. */
export const ROOT_TIMEOUT_MS = 7 * DAY_MS;

/** A child that takes longer holds up its parent; the parent is better off with what it has. */
export const CHILD_TIMEOUT_MS = 2 * HOUR_MS;

/** What the worker's `config.yaml` may say about its own ceiling. */
export interface CeilingOptions {
  /** errand's own state, closed to every tool also where a workspace contains it. */
  readonly errandHome?: string;
  /** Default `workspace-write`; `full-access` only by the host's own configuration. */
  readonly sandbox?: SandboxMode;
  /** Default: every folder, since the workspace narrows it. */
  readonly roots?: readonly string[];
  /** Default false: whoever can start a workflow must not thereby get a way to the network. */
  readonly network?: boolean;
  readonly layers?: readonly Layer[];
}

/** The most that any agent may do on this host. Every activity narrows the policy it was given by this. */
export function defaultCeiling(options: CeilingOptions = {}): Policy {
  const { errandHome, sandbox = 'workspace-write', roots = ['/'], network = false, layers = [] } = options;
  return canonicalPolicy({
    version: 1,
    layers: [...layers, ...(errandHome === undefined ? [] : [stateLayer(errandHome)])],
    sandbox,
    roots,
    network,
    approvals: 'ask',
    tools: [ANY_NAME],
    models: [ANY_NAME],
    hops: MAX_HOPS,
    limits: { maxTurns: 10_000, timeoutMs: 365 * DAY_MS },
    spawn: 'allow',
  });
}

/** What the person who starts a run may choose. */
export interface RootPolicyOptions {
  /** Absolute real path; the only root unless `roots` says otherwise. */
  readonly workspace: string;
  readonly roots?: readonly string[];
  /** Default `workspace-write`. */
  readonly sandbox?: SandboxMode;
  /** Default false. */
  readonly network?: boolean;
  /** `ask` where a person can answer, else `deny`. */
  readonly approvals: 'ask' | 'deny';
  /** Default 2. */
  readonly hops?: number;
  /** Default 200. */
  readonly maxTurns?: number;
  /** Default 7 days. */
  readonly timeoutMs?: number;
  /** Models that may be asked, the run's own among them. */
  readonly models: readonly string[];
  /** Default: all built-in tools. */
  readonly tools?: readonly string[];
  readonly layers?: readonly Layer[];
  /** Default `allow`: a child cannot do more than its parent anyway. */
  readonly spawn?: Verdict;
}

/** The policy of a root agent before the ceiling has its say. */
export function rootPolicy(options: RootPolicyOptions): Policy {
  return canonicalPolicy({
    version: 1,
    layers: options.layers ?? [],
    sandbox: options.sandbox ?? 'workspace-write',
    roots: options.roots ?? [options.workspace],
    network: options.network ?? false,
    approvals: options.approvals,
    tools: options.tools ?? BUILT_IN_TOOLS,
    models: options.models,
    hops: Math.min(options.hops ?? DEFAULT_HOPS, MAX_HOPS),
    limits: {
      maxTurns: options.maxTurns ?? ROOT_MAX_TURNS,
      timeoutMs: options.timeoutMs ?? ROOT_TIMEOUT_MS,
    },
    spawn: options.spawn ?? 'allow',
  });
}

/** A Read denial closes a path to read, grep, glob, edit and write alike. */
function stateLayer(errandHome: string): Layer {
  return { owner: 'ceiling', deny: [`Read(${patternForPath(errandHome)})`], ask: [], allow: [] };
}

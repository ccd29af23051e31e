/**
 * Everything that crosses the lines between client, workflow and activity. All of it is JSON; fields are only ever
 * added, never renamed or removed, because running workflows hold old values.
 */

/** The one workflow type: root agents and sub-agents alike. */
export const AGENT_WORKFLOW = 'agent';

/** Ends agents that the server closed without an ending; at most one runs a home. */
export const RECONCILE_WORKFLOW = 'reconcile';

/** Longest prompt or steering message taken inline, in UTF-8 bytes (DESIGN: larger text belongs in a file). */
export const MAX_PROMPT_BYTES = 64 * 1024;

/** Most calls of one turn that are run; the rest are answered with an error. */
export const MAX_CALLS_PER_TURN = 64;

/** Every way an agent can end. One terminal record per agent and epoch. */
export const AGENT_STATUSES = [
  'completed',
  'max_turns',
  'budget',
  'timeout',
  'failed',
  'cancelled',
  'refused',
  'rejected',
  'lost',
] as const;
export type AgentStatus = (typeof AGENT_STATUSES)[number];

/** Tokens of one or many attempts. `costUsd` is null while no price is known for the model. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly requests: number;
  readonly costUsd: number | null;
}

/** Hashes (sha256, lower-case hex) of what is stored once in the run's `objects/` folder. */
export interface AgentObjects {
  readonly policy: string;
  readonly agentType: string;
  readonly systemPrompt: string;
  readonly toolSchemas: string;
}

/** The few numbers the workflow itself needs; the policy object holds the rest. */
export interface AgentLimits {
  readonly maxTurns: number;
  /** Wall clock of the agent, from its first run's start. */
  readonly timeoutMs: number;
  /** How long infrastructure trouble is waited out before the agent fails. */
  readonly outageMs: number;
  /** Continue as new at this many history events instead of at the server's hint. */
  readonly historyEvents?: number;
}

/**
 * How much longer than its own limits an activity may be open: the server counts the time, too, in which nothing could
 * work on it, since the machine slept or everything was stopped. How long trouble lasts, the activities count themselves.
 */
export const ASLEEP_MS = 7 * 24 * 3600_000;

/** W3C ids, lower-case hex: 32 digits of trace, 16 of span. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

export interface ParentRef {
  readonly agentId: string;
  readonly callId: string;
  /** Branch in which the parent waits; missing means the first. */
  readonly branch?: string;
}

/**
 * Version of `AgentInput`. Fields are only ever added, and an older worker passes over those it does not know; the number
 * goes up only with a field that must not be passed over, because a job would then be done wrongly.
 */
export const AGENT_INPUT_VERSION = 1;

/** Input of the `agent` workflow. */
export interface AgentInput {
  /** Version of this input; missing means 1. A worker that knows only older ones leaves the run alone. */
  readonly v?: number;
  readonly runId: string;
  readonly agentId: string;
  readonly parent?: ParentRef;
  /** File stem of the run below `<home>/transcripts`, e.g. `2026/11/30/rollout-2026-11-30T17-49-36-000Z-<runId>`. */
  readonly transcript: string;
  /** 0 for the root. */
  readonly depth: number;
  /** How many more levels may be spawned below; missing means 0. */
  readonly hops?: number;
  /** How many times the run was resumed with `continue`. */
  readonly epoch: number;
  readonly objects: AgentObjects;
  readonly agentType: string;
  /** Label of 3–8 words; for the root the head of its prompt. */
  readonly description: string;
  readonly limits: AgentLimits;
  readonly model: string;
  /** Inline for a root; a child reads its prompt from the parent's transcript (`parent` says where). */
  readonly prompt?: string;
  readonly workspace: string;
  readonly trace: TraceContext;
  /** Whether this namespace knows errand's search attributes. */
  readonly searchAttributes?: boolean;
  /** Which model server the run was started with: no other one is asked. Missing: a run of an older build, not checked. */
  readonly modelServer?: string;
  readonly carried?: CarriedState;
}

/** What a run hands to itself when it continues as new. */
export interface CarriedState {
  readonly turn: number;
  readonly startedAtMs: number;
  readonly branch: string;
  readonly usage: Usage;
  readonly todos: readonly Todo[];
  readonly answers: readonly Answer[];
  readonly steering: readonly SteeringMessage[];
  readonly children: number;
  readonly lastStep: string;
  /** Ids of the last steering messages taken: one that a client sends again is not taken twice. */
  readonly steered?: readonly string[];
}

/** Names the agent and the place of its files; part of every activity input. Kept short: it is in history every turn. */
export interface AgentRef {
  readonly runId: string;
  readonly agentId: string;
  readonly transcript: string;
  readonly epoch: number;
  /** Empty, or the workflow run id of a deliberate reset. */
  readonly branch: string;
}

export interface Todo {
  readonly content: string;
  readonly status: 'pending' | 'in_progress' | 'completed';
}

/** A user message added while the agent works; `id` is the update id and makes it idempotent. */
export interface SteeringMessage {
  readonly id: string;
  readonly text: string;
}

/** How a call is run: `read` calls share an activity, `effect` calls get one each, `task` is a child workflow. */
export type CallKind = 'read' | 'effect' | 'plan' | 'task';

/** What a `task` call needs to become a child; all but the prompt, which stays in the transcript. */
export interface TaskCall {
  readonly agentId: string;
  readonly agentType: string;
  readonly description: string;
  readonly hops: number;
  readonly objects: AgentObjects;
  readonly limits: AgentLimits;
  readonly model: string;
  readonly spanId: string;
}

/** One tool use as the workflow sees it. The input stays in the transcript. */
export interface Call {
  /** `t<turn>.<index>`. */
  readonly callId: string;
  readonly name: string;
  readonly kind: CallKind;
  /** One line for people, at most 100 bytes. */
  readonly summary: string;
  /** Present: answered without dispatch (tool not offered, wrong input, over the cap). */
  readonly problem?: true;
  readonly task?: TaskCall;
  readonly todos?: readonly Todo[];
  /** Longest run of an effect call (bash), so the workflow can set its time-out. */
  readonly timeoutMs?: number;
}

/** How the workflow answers a call that left no kept result: a child's ending, or trouble. */
export interface Answer {
  readonly callId: string;
  readonly child?: { readonly agentId: string; readonly status: AgentStatus; readonly error?: string };
  /** At most 300 bytes. */
  readonly error?: string;
}

/** Why a turn may only produce text: the limit that was hit. */
export type LastTurnReason = 'max_turns' | 'budget' | 'timeout' | 'repeated_call';

export interface OpenInput {
  readonly input: AgentInput;
  readonly branch: string;
}

export interface Opened {
  /** Names of the tools offered to this agent, in the order in which they are sent. */
  readonly tools: readonly string[];
}

export interface CallModelInput {
  readonly ref: AgentRef;
  readonly turn: number;
  readonly answers?: readonly Answer[];
  readonly steering?: readonly SteeringMessage[];
  readonly last?: LastTurnReason;
}

/** What the model asked for, as `callModel` reports it to the workflow. */
export interface Reply {
  /** `calls`: run them; `continue`: ask again (paused or cut at the output limit); `end`: close the agent. */
  readonly next: 'calls' | 'continue' | 'end';
  /** With `end`: how the agent ended when not `completed`. */
  readonly status?: AgentStatus;
  /** Short reason for `status`, at most 300 bytes. */
  readonly error?: string;
  /** Head of the text, at most 200 bytes. */
  readonly text: string;
  readonly usage: Usage;
  readonly calls?: readonly Call[];
  /** Ids of the steering messages given that the model was not told: this turn's message was there before they came. */
  readonly unsaid?: readonly string[];
}

export interface RunToolsInput {
  readonly ref: AgentRef;
  readonly turn: number;
  /** Indexes of the calls within the turn. */
  readonly calls: readonly number[];
}

/** The rest of an ending is derived from the files by `closeAgent`. */
export interface CloseInput {
  readonly ref: AgentRef;
  readonly status: AgentStatus;
  readonly turn: number;
  readonly answers?: readonly Answer[];
  readonly steering?: readonly SteeringMessage[];
  /** Short reason, at most 500 bytes. */
  readonly error?: string;
  /** What the agent has used, as its workflow knows it: for the ending of one whose transcript is gone. */
  readonly usage?: Usage;
  /** Present when the transcript may have no first record yet: an agent that was stopped while it opened. */
  readonly unopened?: AgentInput;
}

/** A `task` call whose child could not be started because the server knows a workflow of that id. */
export interface SettleChildInput {
  readonly ref: AgentRef;
  readonly turn: number;
  readonly callId: string;
  readonly agentId: string;
}

/**
 * What closing an agent came to. `goesOn`: the transcript already has a next turn with a message that this history has
 * lost, so the agent is not at its end.
 */
export type Closing = AgentResult | { readonly goesOn: true };

/** Result of the workflow. Small: the text is in the transcript. */
export interface AgentResult {
  readonly agentId: string;
  readonly status: AgentStatus;
  readonly turns: number;
  /** Head of the final text, at most 200 bytes. */
  readonly preview: string;
  /** Size of the whole final text in UTF-8 bytes. */
  readonly textBytes: number;
  readonly usage: { readonly own: Usage; readonly subtree: Usage };
  readonly error?: string;
}

/** Answer of the `status` query. */
export interface AgentState {
  readonly agentId: string;
  readonly status: AgentStatus | 'running';
  readonly turn: number;
  readonly lastStep: string;
  readonly usage: Usage;
  readonly todos: readonly Todo[];
  readonly openChildren: readonly { readonly agentId: string; readonly description: string }[];
  readonly waitingFor: string;
}

/** Names of the workflow's queries and updates, as the Temporal UI shows them. */
export const STATUS_QUERY = 'status';
export const TODOS_QUERY = 'todos';
export const STEER_UPDATE = 'steer';

/** Custom search attributes and their Temporal types. */
export const SEARCH_ATTRIBUTES = {
  AgentType: 'KEYWORD',
  AgentStatus: 'KEYWORD',
  AgentDepth: 'INT',
  AgentTokens: 'INT',
  AgentCostUsd: 'DOUBLE',
  AgentWaiting: 'KEYWORD',
} as const;

export const NO_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  requests: 0,
  costUsd: 0,
};

/** In place of a model server's address: the demo's own simulator, wherever it listens today. */
export const DEMO_MODEL_SERVER = 'simulator';
/** The same for workers that were given neither a key nor an address. */
export const NO_MODEL_SERVER = 'none';

/** A model server's name for people. */
export function modelServerWords(modelServer: string): string {
  return modelServer === DEMO_MODEL_SERVER ? "the demo's simulator" : modelServer;
}

/** Sum; an unknown cost stays unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    requests: a.requests + b.requests,
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  };
}

/** Everything that was counted, cached input included. */
export function totalTokens(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

export function callId(turn: number, index: number): string {
  return `t${turn}.${index}`;
}

/** Name in a root's memo of where the run's files are. */
export const TRANSCRIPT_MEMO = 'transcript';

/** Task queue of a home: two people on one namespace never run each other's jobs. */
export function taskQueue(homeId: string): string {
  return `errand-${homeId}`;
}

export function reconcileWorkflowId(homeId: string): string {
  return `errand-${homeId}-reconcile`;
}

export function workflowId(runId: string, agentId: string): string {
  return runId === agentId ? runId : `${runId}/${agentId}`;
}

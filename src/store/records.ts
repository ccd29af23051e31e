import type {
  AgentLimits,
  AgentObjects,
  AgentStatus,
  Call,
  LastTurnReason,
  ParentRef,
  TraceContext,
  Usage,
} from '../protocol.ts';
import type { ToolFacts } from '../tools/tool.ts';

/** Version of the transcript format; a reader keeps what is newer and counts it. */
export const RECORD_VERSION = 1;

/** A content block exactly as the Messages API sent or takes it. */
export type ContentBlock = { readonly type: string } & Readonly<Record<string, unknown>>;

interface RecordBase {
  readonly v: number;
  /** Same when the activity runs again: `<agentId>:<epoch>:<branch>:<turn>:<slot>`. */
  readonly id: string;
  /** Id of the record it follows; null for the first. */
  readonly parent: string | null;
  /** ISO 8601, UTC. */
  readonly at: string;
}

/** First record of every transcript. */
export interface SessionMetaRecord extends RecordBase {
  readonly type: 'session_meta';
  readonly errandVersion: string;
  readonly runId: string;
  readonly agentId: string;
  readonly epoch: number;
  readonly branch: string;
  readonly parentAgent?: ParentRef;
  readonly depth: number;
  readonly hops: number;
  readonly agentType: string;
  readonly description: string;
  readonly workspace: string;
  readonly model: string;
  readonly objects: AgentObjects;
  readonly limits: AgentLimits;
  readonly promptSha256: string;
  readonly clusterId: string;
  readonly namespace: string;
  readonly workflowId: string;
  readonly workflowRunId: string;
  readonly trace: TraceContext;
  /** Which model server alone is asked; missing in records of older builds. */
  readonly modelServer?: string;
}

/** What was recorded of a call when the reply was stored; `input` is in the content block of the same index. */
export interface RecordedCall extends Omit<Call, 'problem'> {
  /** The model's own id: untrusted, only ever sent back. */
  readonly toolUseId: string;
  /** Text of the error answer for a call that is not dispatched. */
  readonly problem?: string;
}

/** What the seal recorded of one result. */
export interface SealedResult {
  readonly callId: string;
  readonly isError: boolean;
  readonly facts?: ToolFacts;
  /** sha256 of name, input and result text: the repeat guard counts these. */
  readonly fingerprint: string;
  /** How many turns in a row this very call gave this very result. */
  readonly streak: number;
}

export interface UserMessageRecord extends RecordBase {
  readonly type: 'message';
  readonly role: 'user';
  readonly turn: number;
  readonly content: readonly ContentBlock[];
  readonly results?: readonly SealedResult[];
  /** Ids of the steering messages in it. */
  readonly steering?: readonly string[];
  readonly last?: LastTurnReason;
}

export interface AssistantMessageRecord extends RecordBase {
  readonly type: 'message';
  readonly role: 'assistant';
  readonly turn: number;
  readonly content: readonly ContentBlock[];
  /** Stop reason as the server sent it. */
  readonly stop: string;
  readonly messageId: string;
  readonly model: string;
  readonly calls: readonly RecordedCall[];
}

/** Written before a request is sent. Without a usage record of the same attempt it is unsettled. */
export interface AttemptRecord extends RecordBase {
  readonly type: 'attempt';
  readonly turn: number;
  /** Counts the requests of one turn from 1. */
  readonly attempt: number;
  readonly model: string;
  readonly maxTokens: number;
  /** Upper bound of what was sent, in tokens: no token is less than a byte. */
  readonly inputTokensMax: number;
  readonly requestSha256: string;
  readonly workflowRunId: string;
  readonly activityAttempt: number;
  /** Unique per activity attempt of a process: whose attempt this is. */
  readonly writer: string;
}

/** What an attempt cost. `outcome` other than `complete` with `settled` false: a cut stream, its usage only a lower bound. */
export interface UsageRecord extends RecordBase {
  readonly type: 'usage';
  readonly turn: number;
  readonly attempt: number;
  readonly settled: boolean;
  readonly outcome: 'complete' | 'cut' | 'error';
  readonly usage: Usage;
  readonly requestId?: string;
  readonly error?: string;
}

/** Name of the event that hands a transcript to another workflow run; its data is `{workflowRunId}`. */
export const OWNER_EVENT = 'owner';

/** Name of the event in a transcript that stands for one that was lost; its data say why. */
export const GONE_EVENT = 'transcript_gone';

/** Everything else worth keeping: `owner`, `fork`, `transcript_gone`, `stubbed`, `subagent_spawned`, `subagent_done`, `waiting`, `workspace`. */
export interface EventRecord extends RecordBase {
  readonly type: 'event';
  readonly turn: number;
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** One finished span, times in epoch milliseconds. */
export interface SpanRecord extends RecordBase {
  readonly type: 'span';
  readonly name: string;
  readonly trace: TraceContext;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

/** The terminal record; the first one of an epoch wins. */
export interface EndRecord extends RecordBase {
  readonly type: 'end';
  readonly epoch: number;
  readonly status: AgentStatus;
  readonly turns: number;
  readonly usage: { readonly own: Usage; readonly subtree: Usage };
  readonly error?: string;
}

export type TranscriptRecord =
  | SessionMetaRecord
  | UserMessageRecord
  | AssistantMessageRecord
  | AttemptRecord
  | UsageRecord
  | EventRecord
  | SpanRecord
  | EndRecord;

/** Contents of `agent-<agentId>.meta.json`, a few hundred bytes: enough to list an agent without its transcript. */
export interface AgentMeta {
  readonly v: number;
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly runId: string;
  readonly callId: string | null;
  readonly workflowId: string;
  readonly agentType: string;
  readonly description: string;
  readonly depth: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly status: AgentStatus | 'running';
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly turns: number;
  readonly usage: { readonly own: Usage; readonly subtree: Usage };
  readonly error: string | null;
}

/** Position of a record; `slot` is `user`, `reply`, `attempt.<n>`, `usage.<n>`, `end`, … */
export interface RecordPosition {
  readonly agentId: string;
  readonly epoch: number;
  readonly branch: string;
  readonly turn: number;
}

export function recordId(position: RecordPosition, slot: string): string {
  return `${position.agentId}:${position.epoch}:${position.branch}:${position.turn}:${slot}`;
}

/** The position that a record's id names; epoch and turn are 0 in an id of another form. */
export function positionOf(id: string): RecordPosition {
  const [agentId = '', epoch = '', branch = '', turn = ''] = id.split(':');
  return { agentId, epoch: toCount(epoch), branch, turn: toCount(turn) };
}

function toCount(text: string): number {
  const count = Number(text);
  return Number.isInteger(count) ? count : 0;
}

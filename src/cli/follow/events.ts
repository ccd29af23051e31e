import { CANCELLED_JOB } from '../../jobs/job-result.ts';
import { CANCELLED_CHILD } from '../../model/last-text.ts';
import type { AgentStatus, LastTurnReason, Todo, Usage } from '../../protocol.ts';
import type {
  AssistantMessageRecord,
  ContentBlock,
  EndRecord,
  SessionMetaRecord,
  UsageRecord,
  UserMessageRecord,
} from '../../store/records.ts';
import { oneLine } from '../text.ts';
import type { TailedRecord } from './tail.ts';

/** Something that happened in a run, as the live views and `--json` show it. Texts are the model's: untrusted. */
export type FollowEvent = AgentEvent | WaitingEvent;

/** What one agent did. */
export type AgentEvent = { readonly agentId: string; readonly at: string } & (
  | {
      readonly type: 'started';
      readonly parentAgentId: string | null;
      readonly agentType: string;
      readonly description: string;
      readonly depth: number;
    }
  | { readonly type: 'turn'; readonly turn: number; readonly text: string }
  | {
      readonly type: 'call';
      readonly turn: number;
      readonly callId: string;
      readonly name: string;
      readonly summary: string;
    }
  | { readonly type: 'todos'; readonly turn: number; readonly todos: readonly Todo[] }
  | {
      readonly type: 'call_failed';
      readonly callId: string;
      readonly summary: string;
      readonly error: string;
      /** It did not fail by itself: somebody stopped it. */
      readonly cancelled?: true;
    }
  | { readonly type: 'steered'; readonly turn: number; readonly text: string }
  | { readonly type: 'limit'; readonly turn: number; readonly reason: LastTurnReason }
  | { readonly type: 'usage'; readonly turn: number; readonly usage: Usage }
  | {
      readonly type: 'retry';
      readonly turn: number;
      readonly attempt: number;
      readonly outcome: string;
      readonly error: string;
    }
  | {
      readonly type: 'ended';
      readonly status: AgentStatus;
      readonly turns: number;
      readonly usage: { readonly own: Usage; readonly subtree: Usage };
      readonly error?: string;
    }
);

/** Nothing moves, and why; an empty text: it moves again. */
export interface WaitingEvent {
  readonly type: 'waiting';
  readonly text: string;
}

/** Turns records into events; remembers what the calls were called. */
export class EventReader {
  readonly #summaries = new Map<string, string>();

  read({ agentId, record }: TailedRecord): readonly AgentEvent[] {
    const base = { agentId, at: record.at };
    switch (record.type) {
      case 'session_meta':
        return [{ ...base, ...started(record) }];
      case 'message':
        return record.role === 'assistant' ? this.#reply(base, record) : this.#sealed(base, record);
      case 'usage':
        return usage(base, record);
      case 'end':
        return [{ ...base, ...ended(record) }];
      default:
        return [];
    }
  }

  #reply(base: Base, record: AssistantMessageRecord): readonly AgentEvent[] {
    const { turn, calls } = record;
    for (const call of calls) this.#summaries.set(`${base.agentId} ${call.callId}`, call.summary);
    const made = calls.filter((call) => call.todos === undefined);
    return [
      { ...base, type: 'turn', turn, text: textOf(record.content) },
      ...made.map(({ callId, name, summary }) => ({ ...base, type: 'call', turn, callId, name, summary }) as const),
      ...calls.flatMap(({ todos }) => (todos ? [{ ...base, type: 'todos', turn, todos } as const] : [])),
    ];
  }

  #sealed(base: Base, { turn, content, results = [], steering = [], last }: UserMessageRecord): readonly AgentEvent[] {
    const failed = results.flatMap(({ callId, isError }, index) => {
      if (!isError) return [];
      const summary = this.#summaries.get(`${base.agentId} ${callId}`) ?? callId;
      const error = resultText(content[index]);
      const cancelled = isCancelled(error) && ({ cancelled: true } as const);
      return [{ ...base, type: 'call_failed', callId, summary, error, ...cancelled } as const];
    });
    const texts = steeringTexts({
      content,
      hasResults: results.length > 0,
      count: steering.length,
      hasLimit: last !== undefined,
    });
    const steered = texts.map((text) => ({ ...base, type: 'steered', turn, text }) as const);
    return [...failed, ...steered, ...(last ? [{ ...base, type: 'limit', turn, reason: last } as const] : [])];
  }
}

/** A model call that gave no whole reply, in words. */
export function retryWords({ attempt, outcome, error }: Extract<AgentEvent, { type: 'retry' }>): string {
  const why = error === '' ? '' : `: ${oneLine(error, 120)}`;
  return `model call ${outcome === 'cut' ? 'cut off' : 'failed'} (attempt ${attempt})${why}`;
}

/** A call that gave an error for a result, in words. */
export function failedWords(
  { summary, error, cancelled }: Extract<AgentEvent, { type: 'call_failed' }>,
  lengths: { readonly summary: number; readonly error: number },
): string {
  if (cancelled) return `cancelled: ${oneLine(summary, lengths.summary)}`;
  return `failed: ${oneLine(summary, lengths.summary)}: ${oneLine(error, lengths.error)}`;
}

// A command says it in its last line, a sub-agent right after its label.
function isCancelled(result: string): boolean {
  const lines = result.trimEnd().split('\n');
  return lines.at(-1) === CANCELLED_JOB || lines[1]?.startsWith(`[${CANCELLED_CHILD}`) === true;
}

/** All text of a message; empty when it has none. */
export function textOf(content: readonly ContentBlock[]): string {
  const texts = content
    .filter(({ type, text }) => type === 'text' && typeof text === 'string')
    .map(({ text }) => String(text));
  return texts.join('\n').trim();
}

/** Text of a tool result block, whichever of its two forms it has. */
export function resultText(block: ContentBlock | undefined): string {
  const content = block?.['content'];
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? textOf(content as readonly ContentBlock[]) : '';
}

interface SteeringPlace {
  readonly content: readonly ContentBlock[];
  readonly hasResults: boolean;
  readonly count: number;
  readonly hasLimit: boolean;
}

// A seal's own notes stand before the steering when there are results, after it when there are none; the text about a
// limit is always last.
function steeringTexts({ content, hasResults, count, hasLimit }: SteeringPlace): readonly string[] {
  const all = content.filter(({ type }) => type === 'text').map(({ text }) => String(text));
  const texts = hasLimit ? all.slice(0, -1) : all;
  return hasResults ? texts.slice(texts.length - count) : texts.slice(0, count);
}

interface Base {
  readonly agentId: string;
  readonly at: string;
}

function started({ parentAgent, agentType, description, depth }: SessionMetaRecord) {
  return { type: 'started', parentAgentId: parentAgent?.agentId ?? null, agentType, description, depth } as const;
}

function ended({ status, turns, usage: total, error }: EndRecord) {
  return { type: 'ended', status, turns, usage: total, ...(error !== undefined && { error }) } as const;
}

function usage(base: Base, { turn, attempt, outcome, usage: spent, error }: UsageRecord): readonly AgentEvent[] {
  const retry =
    outcome === 'complete' ? [] : [{ ...base, type: 'retry', turn, attempt, outcome, error: error ?? '' } as const];
  return [{ ...base, type: 'usage', turn, usage: spent }, ...retry];
}

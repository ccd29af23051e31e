import type { AgentStatus, Call, LastTurnReason, Reply } from '../protocol.ts';
import type { AssistantMessageRecord, RecordedCall } from '../store/records.ts';
import { headOf } from '../store/text.ts';
import type { AgentFiles } from './agent-files.ts';
import { replyOf, userMessageOf } from './agent-files.ts';

/** How often a cut reply is continued before its text is taken as it is. */
const MAX_CONTINUATIONS = 3;
/** How often a paused reply is sent back before the agent fails. */
const MAX_PAUSES = 10;
const PREVIEW_BYTES = 200;

type Outcome = Pick<Reply, 'next' | 'status' | 'error'>;

/** What the workflow is told about a recorded reply; derived from the transcript alone, so always the same. */
export function toReply(files: AgentFiles, record: AssistantMessageRecord): Omit<Reply, 'usage'> {
  const last = userMessageOf(files, record.turn)?.last;
  const outcome = last ? lastTurn(last) : steered(files, record, outcomeOf(files, record));
  return {
    ...outcome,
    text: headOf(textOf(record), PREVIEW_BYTES),
    ...(outcome.next === 'calls' && { calls: withLastTodos(record.calls).map(toCall) }),
  };
}

/** Names the limit, since a history that lost its last events may not know of it. */
function lastTurn(reason: LastTurnReason): Outcome {
  return reason === 'repeated_call' ? ended('failed', reason) : { next: 'end', status: reason };
}

/** A message came in after this reply and is recorded already; this history has lost it. */
function steered(files: AgentFiles, record: AssistantMessageRecord, outcome: Outcome): Outcome {
  const isOver = outcome.next === 'end' && outcome.status === undefined;
  return isOver && hasSteeredTurn(files, record.turn + 1) ? { next: 'continue' } : outcome;
}

/** Whether a turn is recorded to have begun with a message of a person. */
export function hasSteeredTurn(files: AgentFiles, turn: number): boolean {
  return userMessageOf(files, turn)?.steering !== undefined;
}

/** Every stop reason of the API has its branch; an unknown one is never taken for success. */
function outcomeOf(files: AgentFiles, record: AssistantMessageRecord): Outcome {
  const sameStops = stopsInARow(files, record);
  switch (record.stop) {
    case 'end_turn':
    case 'stop_sequence':
    case 'tool_use':
      return record.calls.length > 0 ? { next: 'calls' } : { next: 'end' };
    case 'pause_turn':
      return sameStops > MAX_PAUSES ? failed(`the model paused ${sameStops} times in a row`) : { next: 'continue' };
    case 'max_tokens':
      return cutOff(record, sameStops);
    case 'refusal':
      return ended('refused', 'the model refused to answer');
    case 'model_context_window_exceeded':
      return sameStops > 1 ? failed('the context window is full') : { next: 'continue' };
    default:
      return failed(`unknown stop reason "${record.stop}"`);
  }
}

/** A text that was cut is continued; calls that were cut are answered with an error, never run. */
function cutOff(record: AssistantMessageRecord, sameStops: number): Outcome {
  if (record.calls.length > 0) {
    return sameStops > MAX_CONTINUATIONS
      ? failed('tool calls were cut at the output limit again and again')
      : { next: 'calls' };
  }
  return sameStops > MAX_CONTINUATIONS
    ? { next: 'end', error: 'the text is cut at the output limit' }
    : { next: 'continue' };
}

function stopsInARow(files: AgentFiles, record: AssistantMessageRecord): number {
  let count = 1;
  while (replyOf(files, record.turn - count)?.stop === record.stop) count += 1;
  return count;
}

function failed(error: string): Outcome {
  return ended('failed', error);
}

function ended(status: AgentStatus, error: string): Outcome {
  return { next: 'end', status, error };
}

export function textOf(record: AssistantMessageRecord): string {
  return record.content
    .filter((block) => block.type === 'text' && typeof block.text === 'string')
    .map((block) => String(block.text))
    .join('\n');
}

/** Each list replaces the one before; all of a turn together can be more than the server takes in one payload. */
function withLastTodos(calls: readonly RecordedCall[]): readonly RecordedCall[] {
  const last = calls.findLast(({ todos }) => todos);
  return calls.map((call) => (call === last ? call : { ...call, todos: undefined }));
}

/** The part of a recorded call that may enter history. */
function toCall({ callId, name, kind, summary, problem, task, todos, timeoutMs }: RecordedCall): Call {
  if (problem !== undefined) return { callId, name: name.slice(0, 64), kind, summary, problem: true };
  return {
    callId,
    name,
    kind,
    summary,
    ...(task && { task }),
    ...(todos && { todos }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

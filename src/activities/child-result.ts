import { MAX_CHILD_RESULT_BYTES, childResultText, finalText } from '../model/last-text.ts';
import type { AgentRef, AgentStatus, Answer, TaskCall } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { hasCode } from '../store/files.ts';
import { endOf } from '../store/meta.ts';
import { positionOf } from '../store/records.ts';
import type { RecordedCall } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { Transcript } from '../store/transcript.ts';
import type { ToolResult } from '../tools/tool.ts';
import type { ActivityDeps } from './deps.ts';
import { goneReason } from './gone.ts';
import { markLost } from './mark-lost.ts';
import { spill } from './spill.ts';

/**
 * One result for a `task` call, whatever happened to the child. The text comes from the child's own transcript; the
 * status from the workflow, or from the transcript when this agent was stopped before it heard.
 */
export async function childResult(
  deps: ActivityDeps,
  parent: AgentRef,
  call: RecordedCall,
  answer: Answer | undefined,
): Promise<ToolResult> {
  const { task } = call;
  if (!task) return { text: answer?.error ?? 'the sub-agent was not started', isError: true };
  const ref: AgentRef = { ...parent, agentId: task.agentId };
  const file = transcriptFile(deps.home, ref);
  const transcript = await openChild(deps, ref, file, answer);
  if (transcript === undefined) return goneResult(task, answer, file);
  // The parent's history says that the server closed the child without its last words: nobody else will write them.
  if (answer?.child?.status === 'lost' && transcript.records.length > 0) await markLost(deps, ref, 'terminated');
  const end = endOf(transcript.records);
  const status = answer?.child?.status ?? end?.status ?? notStarted(answer);
  const { text } = finalText(transcript.records);
  const isLong = Buffer.byteLength(text) > MAX_CHILD_RESULT_BYTES / 2;
  return {
    text: childResultText({
      description: task.description,
      text,
      status,
      maxTurns: task.limits.maxTurns,
      transcriptPath: isLong ? await spill(deps, parent, call.callId, text) : file,
      error: answer?.child?.error ?? answer?.error ?? end?.error,
    }),
    isError: !isUsable(status, text),
  };
}

/** Undefined: there is none. */
async function openChild(
  deps: ActivityDeps,
  ref: AgentRef,
  file: string,
  answer: Answer | undefined,
): Promise<Transcript | undefined> {
  try {
    const transcript = await openCached(file);
    const [first] = transcript.records;
    const isOther = first !== undefined && positionOf(first.id).agentId !== ref.agentId;
    return isOther ? undefined : transcript;
  } catch (error) {
    const wasNeverMade = hasCode(error, 'ENOENT') && !hasOpened(answer);
    if (!wasNeverMade && goneReason(error, deps.home) === undefined) throw error;
    return undefined;
  }
}

/**
 * Whether the child came as far as its first record. A stop may come between the reply that asks for a child and its
 * start, a refused one never had a transcript, and the server may have closed one before its first activity.
 */
function hasOpened(answer: Answer | undefined): boolean {
  return answer?.child !== undefined && !['lost', 'rejected'].includes(answer.child.status);
}

function goneResult({ description }: TaskCall, answer: Answer | undefined, file: string): ToolResult {
  const status = answer?.child?.status ?? 'rejected';
  const why = answer?.child?.error ?? answer?.error;
  const facts = hasOpened(answer)
    ? { transcriptPath: file, error: ['what it said is lost, its transcript is gone', why].filter(Boolean).join('; ') }
    : { transcriptPath: undefined, error: why };
  return { text: childResultText({ description, text: '', status, ...facts }), isError: true };
}

function notStarted(answer: Answer | undefined): AgentStatus {
  return answer?.error === undefined ? 'cancelled' : 'rejected';
}

/** A child that was stopped by a limit still gave what it had. */
function isUsable(status: AgentStatus, text: string): boolean {
  if (status === 'completed') return true;
  return text !== '' && (status === 'max_turns' || status === 'timeout' || status === 'budget');
}

import { existsSync } from 'node:fs';
import { MAX_CHILD_RESULT_BYTES, childResultText, finalText } from '../model/last-text.ts';
import type { AgentRef, AgentStatus, Answer } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { endOf } from '../store/meta.ts';
import type { RecordedCall } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { ToolResult } from '../tools/tool.ts';
import type { ActivityDeps } from './deps.ts';
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
  // A stop may come between the reply that asks for a child and its start: then there is no file, and never will be.
  const records = existsSync(file) ? (await openCached(file)).records : undefined;
  // The parent's history says that the server closed the child without its last words: nobody else will write them.
  if (answer?.child?.status === 'lost' && records?.length) await markLost(deps, ref, 'terminated');
  const end = records && endOf(records);
  const status = answer?.child?.status ?? end?.status ?? (records ? notStarted(answer) : 'rejected');
  const { text } = finalText(records ?? []);
  const isLong = Buffer.byteLength(text) > MAX_CHILD_RESULT_BYTES / 2;
  return {
    text: childResultText({
      description: task.description,
      text,
      status,
      maxTurns: task.limits.maxTurns,
      transcriptPath: isLong ? await spill(deps, parent, call.callId, text) : records && file,
      error: answer?.child?.error ?? answer?.error ?? end?.error,
    }),
    isError: !isUsable(status, text),
  };
}

function notStarted(answer: Answer | undefined): AgentStatus {
  return answer?.error === undefined ? 'cancelled' : 'rejected';
}

/** A child that was stopped by a limit still gave what it had. */
function isUsable(status: AgentStatus, text: string): boolean {
  if (status === 'completed') return true;
  return text !== '' && (status === 'max_turns' || status === 'timeout' || status === 'budget');
}

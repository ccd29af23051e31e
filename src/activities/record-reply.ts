import { crashPoint } from '../crash-points.ts';
import { cutToolUseId } from '../model/reply.ts';
import type { AssistantMessageRecord } from '../store/records.ts';
import { recordId } from '../store/records.ts';
import type { RecordDraft } from '../store/transcript.ts';
import { uniqueToolUseIds, usedToolUseIds } from '../store/tool-use-ids.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import type { PaidReply } from './attempt.ts';
import { toRecordedCalls } from './calls.ts';
import type { ActivityDeps } from './deps.ts';

/**
 * Appends the reply with its validated calls, and with what it cost, before any of them is dispatched: on disk when this
 * returns. The first reply of a turn stands.
 */
export async function recordReply(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  turn: number,
  { reply, usage }: PaidReply,
): Promise<AssistantMessageRecord> {
  const id = recordId({ ...files.ref, turn }, 'reply');
  const content = uniqueToolUseIds(reply.content, usedToolUseIds(files.transcript.records));
  const calls = await toRecordedCalls(deps, files, rendered, {
    id,
    turn,
    content,
    wasCut: cutToolUseId(reply) !== undefined,
  });
  const draft: RecordDraft = {
    id,
    type: 'message',
    role: 'assistant',
    turn,
    content,
    stop: reply.stop,
    messageId: reply.messageId,
    model: reply.model,
    calls,
  };
  crashPoint('settle.before');
  const [, recorded] = await files.transcript.appendAll([usage, draft], { sync: true });
  crashPoint('settle.after');
  return recorded?.record as AssistantMessageRecord;
}

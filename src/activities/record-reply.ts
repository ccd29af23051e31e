import type { ModelReply } from '../model/model.ts';
import { cutToolUseId } from '../model/reply.ts';
import type { AssistantMessageRecord } from '../store/records.ts';
import { recordId } from '../store/records.ts';
import { uniqueToolUseIds, usedToolUseIds } from '../store/tool-use-ids.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import { toRecordedCalls } from './calls.ts';
import type { ActivityDeps } from './deps.ts';

/** Appends the reply with its validated calls, before any of them is dispatched. The first reply of a turn stands. */
export async function recordReply(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  turn: number,
  reply: ModelReply,
): Promise<AssistantMessageRecord> {
  const id = recordId({ ...files.ref, turn }, 'reply');
  const content = uniqueToolUseIds(reply.content, usedToolUseIds(files.transcript.records));
  const calls = await toRecordedCalls(deps, files, rendered, {
    id,
    turn,
    content,
    wasCut: cutToolUseId(reply) !== undefined,
  });
  const { record } = await files.transcript.append({
    id,
    type: 'message',
    role: 'assistant',
    turn,
    content,
    stop: reply.stop,
    messageId: reply.messageId,
    model: reply.model,
    calls,
  });
  return record as AssistantMessageRecord;
}

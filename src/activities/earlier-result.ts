import type { RecordedCall, TranscriptRecord } from '../store/records.ts';
import type { ToolResult } from '../tools/tool.ts';

/**
 * The result of a call that was sealed before, in whichever branch: a reset may keep a reply and leave its results
 * behind, and what was answered once is not done again.
 */
export function sealedResult(records: readonly TranscriptRecord[], call: RecordedCall): ToolResult | undefined {
  for (const record of records) {
    if (record.type !== 'message' || record.role !== 'user') continue;
    const block = record.content.find(
      ({ type, tool_use_id }) => type === 'tool_result' && tool_use_id === call.toolUseId,
    );
    if (!block) continue;
    const facts = record.results?.find(({ callId }) => callId === call.callId)?.facts;
    return { text: String(block.content), isError: block.is_error === true, ...(facts && { facts }) };
  }
  return undefined;
}

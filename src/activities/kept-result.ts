import { callFolder, openCallJournal } from '../effects/journal.ts';
import type { AgentRef } from '../protocol.ts';
import type { RecordedCall } from '../store/records.ts';
import type { ToolResult } from '../tools/tool.ts';
import type { ActivityDeps } from './deps.ts';

/** The result that the effect journal holds for a call of the branch that `ref` names, until the seal has put it into the transcript. */
export async function keptResult(
  deps: ActivityDeps,
  ref: AgentRef,
  call: RecordedCall,
): Promise<ToolResult | undefined> {
  return openCallJournal(callFolder(deps.home, ref, call.callId)).kept();
}

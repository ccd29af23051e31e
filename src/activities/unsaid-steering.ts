import type { SteeringMessage } from '../protocol.ts';
import type { TranscriptRecord } from '../store/records.ts';
import { chainOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';

/**
 * Steering that no message of the conversation holds yet. An attempt that was stopped may have sealed it without the
 * workflow hearing of it, and then it comes again with the next seal; a turn's message may also have been there before
 * the steering was, as the first one always is.
 */
export function unsaidSteering(
  files: AgentFiles,
  steering: readonly SteeringMessage[] = [],
): readonly SteeringMessage[] {
  if (steering.length === 0) return [];
  const said = new Set(chainOf(files).flatMap(steeringIn));
  return steering.filter(({ id }) => !said.has(id));
}

function steeringIn(record: TranscriptRecord): readonly string[] {
  return record.type === 'message' && record.role === 'user' ? (record.steering ?? []) : [];
}

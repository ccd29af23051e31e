import type { SteeringMessage } from '../protocol.ts';
import { conversation } from '../store/chain.ts';
import type { AgentFiles } from './agent-files.ts';

/**
 * Steering that no message of the conversation holds yet. An attempt that was stopped may have sealed it without the
 * workflow hearing of it, and then it comes again with the next seal; a turn's message may also have been there before
 * the steering was, as the first one always is.
 */
export function unsaidSteering(
  files: Pick<AgentFiles, 'transcript'>,
  steering: readonly SteeringMessage[] = [],
): readonly SteeringMessage[] {
  if (steering.length === 0) return [];
  const said = new Set(conversation(files.transcript.records).flatMap(steeringIn));
  return steering.filter(({ id }) => !said.has(id));
}

function steeringIn(record: ReturnType<typeof conversation>[number]): readonly string[] {
  return record.type === 'message' && record.role === 'user' ? (record.steering ?? []) : [];
}

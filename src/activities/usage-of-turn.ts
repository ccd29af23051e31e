import { addUsage } from '../protocol.ts';
import type { Usage } from '../protocol.ts';
import { recordId } from '../store/records.ts';
import type { AgentFiles } from './agent-files.ts';

/** What all attempts of a turn cost in this branch, failed ones included. */
export function usageOfTurn(files: AgentFiles, turn: number): Usage | undefined {
  const ofTurn = recordId({ ...files.ref, turn }, 'usage.');
  let sum: Usage | undefined;
  for (let i = files.transcript.records.length - 1; i >= 0; i--) {
    const record = files.transcript.records[i];
    if (record?.type === 'message' && record.turn < turn) break;
    if (record?.type === 'usage' && record.id.startsWith(ofTurn))
      sum = sum ? addUsage(sum, record.usage) : record.usage;
  }
  return sum;
}

import { addUsage } from '../protocol.ts';
import type { Usage } from '../protocol.ts';
import type { AgentFiles } from './agent-files.ts';

/** What all attempts of a turn cost, failed ones included. */
export function usageOfTurn(files: AgentFiles, turn: number): Usage | undefined {
  let sum: Usage | undefined;
  for (let i = files.transcript.records.length - 1; i >= 0; i--) {
    const record = files.transcript.records[i];
    if (record?.type === 'message' && record.turn < turn) break;
    if (record?.type === 'usage' && record.turn === turn) sum = sum ? addUsage(sum, record.usage) : record.usage;
  }
  return sum;
}

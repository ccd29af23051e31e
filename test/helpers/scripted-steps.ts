import { NO_USAGE } from '../../src/protocol.ts';
import type { Call, LastTurnReason, Reply } from '../../src/protocol.ts';
import type { AgentSteps } from '../../src/workflows/agent.ts';

/** Real steps for the loop that play a list of replies and note what happened; they fail when asked once too often. */
export function scriptedSteps(replies: readonly Partial<Reply>[], steeringAfter: readonly number[] = []) {
  const log: string[] = [];
  let asked = 0;
  const steps: AgentSteps = {
    openTranscript: () => noted(log, 'open'),
    callModel: async (turn: number, last?: LastTurnReason) => {
      log.push(last ? `model ${turn} (${last})` : `model ${turn}`);
      const reply = replies[asked++];
      if (!reply) throw new Error(`the script has ${replies.length} replies, turn ${turn} asked for one more`);
      return { next: 'end', text: '', usage: NO_USAGE, ...reply };
    },
    runCalls: (turn: number, calls: readonly Call[]) =>
      noted(log, `calls ${turn}: ${calls.map(({ name }) => name).join()}`),
    hasSteering: () => steeringAfter.includes(asked),
    turnBoundary: (nextTurn: number) => noted(log, `boundary ${nextTurn}`),
  };
  return { steps, log };
}

export function call(name: string, index: number, kind: Call['kind'] = 'read'): Call {
  return { callId: `t1.${index}`, name, kind, summary: `${name} something` };
}

async function noted(log: string[], line: string): Promise<void> {
  log.push(line);
}

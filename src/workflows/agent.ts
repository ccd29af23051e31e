import type { AgentStatus, Call, LastTurnReason, Reply } from '../protocol.ts';

/** What a turn is made of. The workflow gives Temporal's steps, a test gives scripted ones. */
export interface AgentSteps {
  /** Header and prompt, once. */
  openTranscript(): Promise<void>;
  /** Seals the turn before, then asks the model. With `last` it may only answer in text. */
  callModel(turn: number, last?: LastTurnReason): Promise<Reply>;
  /** Runs every call to its one result; a failed call is an answer, never a throw. */
  runCalls(turn: number, calls: readonly Call[]): Promise<void>;
  /** A message came in that the model has not seen. */
  hasSteering(): boolean;
  /** The only place where a run may continue as new; does not return then. */
  turnBoundary(nextTurn: number): Promise<void>;
}

/** How the loop ended; `turn` is the last one. */
export interface Ending {
  readonly status: AgentStatus;
  readonly turn: number;
  readonly error?: string;
}

/** The agent: ask, run what was asked for, ask again. Cancellation, time limit and failures are in `ending.ts`. */
export async function runAgent(steps: AgentSteps, firstTurn: number, maxTurns: number): Promise<Ending> {
  if (firstTurn === 1) await steps.openTranscript();

  for (let turn = firstTurn; ; turn++) {
    const reply = await steps.callModel(turn);
    const isOver = reply.next === 'end' && (reply.status !== undefined || !steps.hasSteering());
    if (isOver) return { status: reply.status ?? 'completed', turn, error: reply.error };

    await steps.runCalls(turn, reply.calls ?? []);
    if (turn >= maxTurns) return atLimit(steps, turn + 1, 'max_turns');
    await steps.turnBoundary(turn + 1);
  }
}

/** Partial work is not lost: one more turn in which the model can only say what it has. */
export async function atLimit(steps: AgentSteps, turn: number, reason: 'max_turns' | 'timeout'): Promise<Ending> {
  const reply = await steps.callModel(turn, reason);
  return { status: reply.status ?? reason, turn, error: reply.error };
}

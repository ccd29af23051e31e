import type { AgentInput, AgentResult } from '../protocol.ts';
import { runAgent } from './agent.ts';
import { endBroken, isForTemporal } from './broken.ts';
import { toItsEnd } from './ending.ts';
import { assertKnownVersion } from './input-version.ts';
import { LiveState, registerHandlers } from './state.ts';
import { createSteps } from './steps.ts';

export { reconcile } from './reconcile.ts';

/** The workflow of every agent, root and sub-agents alike. */
export async function agent(input: AgentInput): Promise<AgentResult> {
  assertKnownVersion(input);
  try {
    const state = new LiveState(input);
    registerHandlers(state);
    const steps = createSteps(input, state);
    const loop = (firstTurn: number) => runAgent(steps, firstTurn, input.limits.maxTurns);
    return await toItsEnd(input, state, steps, loop);
  } catch (error) {
    if (isForTemporal(error)) throw error;
    return endBroken(input, error);
  }
}

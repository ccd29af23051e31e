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
    return await toItsEnd(input, state, steps, () => runAgent(steps, input.carried?.turn ?? 1, input.limits.maxTurns));
  } catch (error) {
    if (isForTemporal(error)) throw error;
    return endBroken(input, error);
  }
}

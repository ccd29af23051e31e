import type { AgentInput, AgentResult } from '../protocol.ts';
import { runAgent } from './agent.ts';
import { toItsEnd } from './ending.ts';
import { LiveState, registerHandlers } from './state.ts';
import { createSteps } from './steps.ts';

export { reconcile } from './reconcile.ts';

/** The workflow of every agent, root and sub-agents alike. */
export async function agent(input: AgentInput): Promise<AgentResult> {
  const state = new LiveState(input);
  registerHandlers(state);
  const steps = createSteps(input, state);
  return toItsEnd(input, state, steps, () => runAgent(steps, input.carried?.turn ?? 1, input.limits.maxTurns));
}

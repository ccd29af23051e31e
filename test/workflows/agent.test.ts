import { describe, expect, it } from 'vitest';
import { atLimit, runAgent } from '../../src/workflows/agent.ts';
import { call, scriptedSteps } from '../helpers/scripted-steps.ts';

describe('the agent loop', () => {
  it('opens once, runs the calls of a turn and ends at a reply without calls', async () => {
    const { steps, log } = scriptedSteps([{ next: 'calls', calls: [call('read', 0)] }, { text: 'done' }]);
    const ending = await runAgent(steps, 1, 10);
    expect(ending).toEqual({ status: 'completed', turn: 2, error: undefined });
    expect(log).toEqual(['open', 'model 1', 'calls 1: read', 'boundary 2', 'model 2']);
  });

  it('does not open again after continuing as new', async () => {
    const { steps, log } = scriptedSteps([{ text: 'done' }]);
    await runAgent(steps, 7, 10);
    expect(log).toEqual(['model 7']);
  });

  it('takes another turn when steering came with the last reply', async () => {
    const { steps, log } = scriptedSteps([{ text: 'done' }, { text: 'really done' }], [1]);
    const ending = await runAgent(steps, 1, 10);
    expect(ending.turn).toBe(2);
    expect(log).toEqual(['open', 'model 1', 'calls 1: ', 'boundary 2', 'model 2']);
  });

  it('leaves one turn of text at the limit of turns', async () => {
    const asks = { next: 'calls', calls: [call('read', 0)] } as const;
    const { steps, log } = scriptedSteps([asks, asks, { text: 'so far' }]);
    const ending = await runAgent(steps, 1, 2);
    expect(ending).toEqual({ status: 'max_turns', turn: 3, error: undefined });
    expect(log.at(-1)).toBe('model 3 (max_turns)');
  });

  it('ends with the status that the reply names, steering or not', async () => {
    const { steps } = scriptedSteps([{ next: 'end', status: 'refused', error: 'no' }], [1]);
    expect(await runAgent(steps, 1, 10)).toEqual({ status: 'refused', turn: 1, error: 'no' });
  });

  it('asks again after a reply that goes on', async () => {
    const { steps } = scriptedSteps([{ next: 'continue' }, { text: 'done' }]);
    expect((await runAgent(steps, 1, 10)).turn).toBe(2);
  });

  it('keeps the failure of a last turn', async () => {
    const { steps } = scriptedSteps([{ status: 'failed', error: 'odd stop' }]);
    expect(await atLimit(steps, 5, 'timeout')).toEqual({ status: 'failed', turn: 5, error: 'odd stop' });
  });
});

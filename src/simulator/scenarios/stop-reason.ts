import type { Scenario, Step } from '../scenario.ts';

export const stopReason: Scenario = {
  name: 'stop-reason',
  description: 'ends its first replies with a chosen stop reason, then ends normally',
  args: {
    reason: 'the stop reason, known to the API or not (max_tokens)',
    times: 'how many replies end that way (1); 0: all',
    within: 'text, or write: in the middle of the input of a write call (text)',
  },
  play: ({ args, turn }) => {
    const times = Number(args.times ?? 1);
    if (times > 0 && turn > times) return { text: 'That was the rest.' };
    return { ...partial(args.within, turn), stopReason: args.reason ?? 'max_tokens' };
  },
};

function partial(within: string | undefined, turn: number): Step {
  if (within !== 'write') return { text: `Part ${turn}, and there is more` };
  const rawInput = '{"file_path":"cut-off.txt","content":"the first half of';
  return { text: 'I write the file.', calls: [{ name: 'write', input: {}, rawInput }] };
}

import { toMarker } from '../marker.ts';
import type { Scenario } from '../scenario.ts';

export const runaway: Scenario = {
  name: 'runaway',
  description: 'asks for three sub-agents every turn, each of which does the same; never ends by itself',
  args: { calls: 'how many sub-agents a turn (3)' },
  play: ({ args, turn }) => ({
    text: `More hands are needed (turn ${turn}).`,
    calls: Array.from({ length: Number(args.calls ?? 3) }, (_, index) => ({
      name: 'task',
      input: {
        description: `help with part ${turn}.${index + 1}`,
        prompt: `Help me with part ${turn}.${index + 1}. ${toMarker('runaway', args)}`,
      },
    })),
  }),
};

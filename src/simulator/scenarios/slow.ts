import type { Scenario } from '../scenario.ts';

export const slow: Scenario = {
  name: 'slow',
  description: 'one plain reply, after a long wait',
  args: {
    ms: 'how long to wait before the answer, in ms (60000)',
    between: 'how long to wait before each event, in ms (0)',
  },
  play: ({ args }) => ({ text: 'That took a while, but here I am.', fault: { delayMs: Number(args.ms ?? 60_000) } }),
};

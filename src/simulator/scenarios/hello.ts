import type { Scenario } from '../scenario.ts';

export const hello: Scenario = {
  name: 'hello',
  description: 'one plain reply',
  play: () => ({ text: 'Hello! How can I help?' }),
};

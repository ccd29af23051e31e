import { withoutMarkers } from '../marker.ts';
import type { Scenario } from '../scenario.ts';

export const echo: Scenario = {
  name: 'echo',
  description: 'answers with the last user text',
  play: (view) => ({ text: withoutMarkers(view.lastUserText) || 'You said nothing.' }),
};

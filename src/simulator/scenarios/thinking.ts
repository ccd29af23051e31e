import { UnexpectedResult } from '../scenario.ts';
import type { Scenario } from '../scenario.ts';
import { script } from '../script.ts';

export const thinking: Scenario = {
  name: 'thinking',
  description: 'thinks before its calls, openly and redacted; the blocks must come back unchanged',
  args: { path: 'the file that is read (README.md)' },
  play: (view) => {
    const path = view.args.path ?? 'README.md';
    const read = (limit: number) => ({ name: 'read', input: { file_path: path, limit } });
    return script(
      [
        { thinking: 'Two looks at the file will do.', text: 'I look at the file twice.', calls: [read(10), read(20)] },
        { redacted: 'One more look.', text: 'Once more.', calls: [read(30)] },
        () => ({ thinking: 'Everything came back.', text: closing(view.results.length) }),
      ],
      { text: 'There is nothing to add.' },
    )(view);
  },
};

function closing(results: number): string {
  if (results < 3) throw new UnexpectedResult('three results', `${results} came`);
  return 'I have thought it through.';
}

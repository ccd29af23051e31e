import { fromBase64 } from '../marker.ts';
import type { Scenario } from '../scenario.ts';
import { call, expectResult, say, script } from '../script.ts';

export const edit: Scenario = {
  name: 'edit',
  description: 'reads a file, replaces one passage and reports',
  args: { path: 'the file (README.md)', old: 'base64 of the text to replace', new: 'base64 of its replacement' },
  play: (view) => {
    const path = view.args.path ?? 'README.md';
    const before = fromBase64(view.args.old ?? '');
    const after = fromBase64(view.args.new ?? '');
    return script(
      [
        call('read', { file_path: path }, { text: `I read ${path} before I change it.` }),
        expectResult(
          { tool: 'read', isError: false },
          call('edit', { file_path: path, old_string: before, new_string: after }, { text: 'Now the change.' }),
        ),
        expectResult({ tool: 'edit', isError: false }, say(`${path} is changed.`)),
      ],
      say('There is nothing more to change.'),
    )(view);
  },
};

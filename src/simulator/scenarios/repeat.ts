import type { Scenario } from '../scenario.ts';

export const repeat: Scenario = {
  name: 'repeat',
  description: 'makes the same call every turn; never ends by itself',
  args: { tool: 'the tool (read)', path: 'file, pattern or command for it (README.md)' },
  play: ({ args }) => {
    const name = args.tool ?? 'read';
    return {
      text: 'I try that again.',
      calls: [{ name, input: { [FIELD[name] ?? 'file_path']: args.path ?? 'README.md' } }],
    };
  },
};

const FIELD: Readonly<Record<string, string>> = { bash: 'command', glob: 'pattern', grep: 'pattern' };

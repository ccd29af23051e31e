import type { Call, Scenario } from '../scenario.ts';

export const toolLoop: Scenario = {
  name: 'tool-loop',
  description: 'a number of turns with one call each, then done; each call differs a little from the one before',
  args: {
    turns: 'how many turns with a call (3)',
    tool: 'read, glob, grep, bash or write (read)',
    path: 'file, pattern or command for the tool (README.md)',
  },
  play: ({ args, turn }) => {
    const turns = Number(args.turns ?? 3);
    if (turn > turns) return { text: `Done after ${turns} turns.` };
    return {
      text: `Step ${turn} of ${turns}.`,
      calls: [toCall(args.tool ?? 'read', args.path ?? 'README.md', turn)],
    };
  },
};

function toCall(name: string, path: string, turn: number): Call {
  switch (name) {
    case 'glob':
      return { name, input: { pattern: `{${path},*.step-${turn}}` } };
    case 'grep':
      return { name, input: { pattern: `step ${turn}|[a-z]`, path } };
    case 'bash':
      return { name, input: { command: `${path} # step ${turn}` } };
    case 'write':
      return { name, input: { file_path: `${path}.${turn}`, content: `Step ${turn}\n` } };
    default:
      return { name, input: { file_path: path, limit: 1000 + turn } };
  }
}

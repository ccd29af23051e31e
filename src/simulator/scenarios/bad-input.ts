import type { Call, Scenario } from '../scenario.ts';
import { UnexpectedResult } from '../scenario.ts';

const CALLS: Readonly<Record<string, Call>> = {
  missing: { name: 'write', input: { content: 'to nowhere' } },
  type: { name: 'read', input: { file_path: 42, limit: 'many' } },
  extra: { name: 'read', input: { file_path: 'README.md', colour: 'red' } },
  unknown: { name: 'Write2', input: { file_path: 'a.txt', content: 'x' } },
  forged: {
    name: 'task',
    input: {
      description: 'a forged sub-agent',
      prompt: 'Do all you like.',
      hops: 9,
      policy: { sandbox: 'full-access' },
    },
  },
  string: { name: 'read', input: '{"file_path":"README.md"}' },
};

const DEFAULT_KINDS = 'missing,type,extra,unknown,forged';

export const badInput: Scenario = {
  name: 'bad-input',
  description: 'calls with wrong inputs, an unknown tool and a forged task; expects an error for each, then reports',
  args: {
    kinds: `which, in order, one a turn: ${Object.keys(CALLS).join(', ')} (${DEFAULT_KINDS})`,
    times: 'how often each is called (1)',
    lenient: '1: go on also when a call succeeds (0)',
  },
  play: ({ args, turn, lastResults, results }) => {
    const kinds = (args.kinds ?? DEFAULT_KINDS).split(',');
    const times = Number(args.times ?? 1);
    const accepted = lastResults.find((result) => !result.isError);
    if (accepted && args.lenient !== '1') {
      throw new UnexpectedResult(
        'an error',
        `${accepted.name} with a wrong input gave "${accepted.text.slice(0, 400)}"`,
      );
    }
    const kind = kinds[Math.floor((turn - 1) / times)];
    if (kind === undefined)
      return { text: `All wrong calls were answered: ${results.map((one) => one.text).join(' | ')}` };
    return { text: `I try a call that is wrong: ${kind}.`, calls: [callFor(kind)] };
  },
};

function callFor(kind: string): Call {
  const call = CALLS[kind];
  if (!call) throw new UnexpectedResult(`a kind out of ${Object.keys(CALLS).join(', ')}`, `it is "${kind}"`);
  return call;
}

import type { Anchor, Fault, Scenario } from '../scenario.ts';
import { UnexpectedResult } from '../scenario.ts';

type Args = Readonly<Record<string, string>>;

const CUTS: Readonly<Record<string, Anchor>> = {
  'cut-start': 'message_start',
  'cut-thinking': 'thinking',
  'cut-text': 'text',
  'cut-json': 'input_json',
  'cut-block': 'block_stop',
  'cut-end': 'message_delta',
};

export const fault: Scenario = {
  name: 'fault',
  description: 'reads a file, and one turn of it fails in a chosen way',
  args: {
    kind:
      'an HTTP status (429, 529, 500, …), cut, cut-start, cut-thinking, cut-text, cut-json, cut-block, cut-end, ' +
      'silence, overloaded (inside the stream), malformed, delay (529)',
    times: 'how many requests of that turn fail (1); 0: all',
    turn: 'which turn fails (1)',
    after: 'retry-after: seconds, or date+N; for a status',
    type: 'error type, for a status or overloaded',
    bytes: 'with kind=cut: after how many bytes of body (100)',
    ms: 'with kind=delay: how long (1000)',
    path: 'the file that is read (README.md)',
  },
  play: ({ args, turn }) => {
    const trouble = turn === Number(args.turn ?? 1) ? { fault: toFault(args) } : {};
    if (turn > 1 && turn > Number(args.turn ?? 1)) return { text: 'Done, in spite of everything.' };
    const input = { file_path: args.path ?? 'README.md', limit: 100 + turn };
    const thinking = args.kind === 'cut-thinking' ? { thinking: 'The file will say more than I know.' } : {};
    return { ...thinking, text: 'I read the file to see what is in it.', calls: [{ name: 'read', input }], ...trouble };
  },
};

function toFault(args: Args): Fault {
  const times = Number(args.times ?? 1);
  return { ...(times > 0 ? { times } : {}), ...toKind(args.kind ?? '529', args) };
}

function toKind(kind: string, args: Args): Fault {
  const cut = CUTS[kind];
  if (cut) return { cut };
  if (/^\d{3}$/.test(kind)) return toStatus(Number(kind), args);
  if (kind === 'cut') return { cut: Number(args.bytes ?? 100) };
  if (kind === 'silence') return { silence: 'message_start' };
  if (kind === 'overloaded') return { errorEvent: args.type ?? 'overloaded_error' };
  if (kind === 'malformed') return { malformedInput: true };
  if (kind === 'delay') return { delayMs: Number(args.ms ?? 1000) };
  throw new UnexpectedResult(`a known kind of fault (see the arguments of the scenario)`, `kind is "${kind}"`);
}

function toStatus(status: number, args: Args): Fault {
  const { after, type } = args;
  return {
    status,
    ...(after === undefined ? {} : { retryAfter: after }),
    ...(type === undefined ? {} : { errorType: type }),
  };
}

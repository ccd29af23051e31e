import { fromBase64 } from '../marker.ts';
import type { Call, Scenario } from '../scenario.ts';

export const bash: Scenario = {
  name: 'bash',
  description: 'runs shell commands, then reports what came out',
  args: {
    commands: 'base64 of each command, separated by commas (of: echo hello)',
    together: '1: all in one turn; else one a turn (0)',
    timeout: 'timeout_ms of each call',
  },
  play: ({ args, turn, results }) => {
    const all = (args.commands ?? 'ZWNobyBoZWxsbw==').split(',').map((one) => toCall(fromBase64(one), args.timeout));
    const turns = args.together === '1' ? [all] : all.map((one) => [one]);
    const calls = turns[turn - 1];
    if (calls) return { text: 'I run it.', calls };
    return {
      text: results.map((result) => `${result.isError ? 'Error: ' : ''}${result.text}`).join('\n---\n') || 'No output.',
    };
  },
};

function toCall(command: string, timeout: string | undefined): Call {
  return { name: 'bash', input: { command, ...(timeout === undefined ? {} : { timeout_ms: Number(timeout) }) } };
}

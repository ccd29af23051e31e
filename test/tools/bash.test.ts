import { expect, test } from 'vitest';
import { bashTool } from '../../src/tools/bash.ts';
import { newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

testTool(bashTool, {
  valid: [
    [{ command: 'npm test' }, 'bash npm test'],
    [{ command: 'cat <<X\n1\nX\n', timeout_ms: 21_600_000 }, 'bash cat <<X 1 X'],
    [{ command: `echo ${'é'.repeat(60)}` }, `bash echo ${'é'.repeat(43)}…`],
  ],
  invalid: [
    [{}, '- command: missing; expected string'],
    [{ command: '' }, 'expected at least 1 characters'],
    [{ command: 'a\0b' }, '- command: got "a\\u0000b"; must not contain NUL'],
    [{ command: 'a', timeout_ms: 21_600_001 }, '- timeout_ms: got 21600001; expected at most 21600000'],
    [{ command: 'a', timeout_ms: 1.5 }, '- timeout_ms: got 1.5; expected int'],
  ],
});

test('a command has two minutes unless it asks for another time', () => {
  expect(bashTool.timeoutMs({ command: 'a' })).toBe(120_000);
  expect(bashTool.timeoutMs({ command: 'a', timeout_ms: 5 })).toBe(5);
});

test('the policy is asked about the command line as it will be run', async () => {
  const input = { command: 'npm test && ls' };
  expect(bashTool.command(input)).toBe('npm test && ls');
  expect(await bashTool.actions(input, newAgent().context)).toEqual([{ tool: 'bash', access: 'execute', ...input }]);
});

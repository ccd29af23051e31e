import { describe, expect, it } from 'vitest';
import { taskTool } from '../../src/tools/task.ts';

const valid = { description: 'Find all callers', prompt: 'Find every caller of f in src.' };

function problems(input: unknown): string {
  return (
    taskTool.schema
      .safeParse(input)
      .error?.issues.map(({ message, path }) => `${path.join('.')}: ${message}`)
      .join('\n') ?? ''
  );
}

describe('the input of task', () => {
  it('takes a label and a prompt, a type and tools if wanted', () => {
    expect(problems(valid)).toBe('');
    expect(problems({ ...valid, agent_type: 'explore', tool_names: ['read'] })).toBe('');
  });

  it.each([
    [{ description: 'x' }, 'prompt: '],
    [{ ...valid, prompt: '  ' }, 'prompt: must not be empty'],
    [{ ...valid, prompt: 'ä'.repeat(32 * 1024 + 1) }, 'prompt: must be at most 65536 bytes'],
    [{ ...valid, description: 'x'.repeat(81) }, 'description: must be a label of 3 to 8 words'],
    [{ ...valid, description: ' ' }, 'description: must not be empty'],
    [{ ...valid, tool_names: [] }, 'tool_names: must name at least one tool'],
    [{ ...valid, tool_names: 'read' }, 'tool_names: '],
    [{ ...valid, hops: 5 }, 'hops'],
    [{ ...valid, agentId: 'x' }, 'agentId'],
  ])('refuses %j', (input, problem) => {
    expect(problems(input)).toContain(problem);
  });

  it('counts the prompt in bytes', () => {
    expect(problems({ ...valid, prompt: 'ä'.repeat(32 * 1024) })).toBe('');
    expect(problems({ ...valid, prompt: '😀'.repeat(16 * 1024) })).toBe('');
    expect(problems({ ...valid, prompt: '😀'.repeat(16 * 1024 + 1) })).toContain('65536 bytes');
  });
});

import { expect, test } from 'vitest';
import { todoWriteTool } from '../../src/tools/todo-write.ts';
import { callKind } from '../../src/tools/tool.ts';
import { newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

const todo = { content: 'write tests', status: 'in_progress' };

testTool(todoWriteTool, {
  valid: [
    [{ todos: [] }, 'todo_write 0 of 0 tasks done'],
    [{ todos: [{ ...todo, status: 'completed' }, todo, todo] }, 'todo_write 1 of 3 tasks done: write tests'],
  ],
  invalid: [
    [
      { todos: [{ content: 'x', status: 'done' }] },
      '- todos[0].status: got "done"; expected one of "pending", "in_progress"',
    ],
    [{ todos: [{ ...todo, activeForm: 'x' }] }, '- todos[0]: unknown "activeForm"; valid fields are content, status'],
    [{ todos: Array.from({ length: 51 }, () => todo) }, '- todos: got an array; expected at most 50 items'],
    [{ todos: [{ ...todo, content: 'x'.repeat(201) }] }, '- todos[0].content: got "xxx'],
  ],
});

test('is a plan, kept by the workflow', async () => {
  expect(callKind(todoWriteTool)).toBe('plan');
  expect(await todoWriteTool.actions({ todos: [] }, newAgent().context)).toEqual([
    { tool: 'todo_write', access: 'plan' },
  ]);
});

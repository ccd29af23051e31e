import { z } from 'zod';
import { counted, summaryLine } from './text.ts';
import type { WorkflowTool } from './tool.ts';

const MAX_TODOS = 50;
const MAX_CONTENT_CHARACTERS = 200;

const schema = z.strictObject({
  todos: z
    .array(
      z.strictObject({
        content: z.string().min(1).max(MAX_CONTENT_CHARACTERS).describe('What is to be done, in a few words.'),
        status: z.enum(['pending', 'in_progress', 'completed']),
      }),
    )
    .max(MAX_TODOS)
    .describe('The whole list: it replaces the one before.'),
});

export const todoWriteTool: WorkflowTool<typeof schema> = {
  name: 'todo_write',
  effect: 'workflow',
  schema,
  description: [
    'Replaces your list of tasks, which people can see. Use it for work of several steps: write the steps down first,',
    'mark a step in_progress when you start it and completed as soon as it is done. Not needed for a single step.',
  ].join(' '),
  summarize({ todos }) {
    const done = todos.filter((todo) => todo.status === 'completed').length;
    const current = todos.find((todo) => todo.status === 'in_progress');
    return summaryLine(
      `todo_write ${done} of ${counted(todos.length, 'task')} done${current ? `: ${current.content}` : ''}`,
    );
  },
  actions: async () => [{ tool: 'todo_write', access: 'plan' }],
};

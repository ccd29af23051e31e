import { z } from 'zod';
import { MAX_PROMPT_BYTES } from '../protocol.ts';
import { defineTool } from './tool.ts';

/** Name of the tool that delegates; its execution is a child workflow. */
export const TASK_TOOL = 'task';

/** The type of a child when the call names none. */
export const DEFAULT_AGENT_TYPE = 'general-purpose';

const MAX_DESCRIPTION_CHARS = 80;

/**
 * What the model may say about a child. Ids, depth, hops and policy are not here: they come from the parent. Unknown
 * keys are refused, so that nothing the model believes to have set is silently dropped.
 */
const taskSchema = z.strictObject({
  description: z
    .string()
    .trim()
    .min(1, 'must not be empty: 3 to 8 words that name the task')
    .max(MAX_DESCRIPTION_CHARS, `must be a label of 3 to 8 words, at most ${MAX_DESCRIPTION_CHARS} characters`)
    .refine((text) => !/[\n\r]/.test(text), 'must be one line')
    .describe('Label of 3 to 8 words that people see, for example "Find callers of parseConfig".'),
  prompt: z
    .string()
    .refine((text) => text.trim() !== '', 'must not be empty: it is all the agent gets to know')
    .refine((text) => utf8Bytes(text) <= MAX_PROMPT_BYTES, {
      error: `must be at most ${MAX_PROMPT_BYTES} bytes: put long material in a file and name the file`,
    })
    .describe('The whole task: goal, what is known, files and folders that matter, limits, and what to report back.'),
  agent_type: z
    .string()
    .trim()
    .min(1, 'must not be empty: leave it out for the default')
    .optional()
    .describe(`Kind of agent; default ${DEFAULT_AGENT_TYPE}.`),
  tool_names: z
    .array(z.string().trim().min(1, 'must not be empty'))
    .min(1, 'must name at least one tool: leave it out to give all that the agent type has')
    .optional()
    .describe('Gives the agent only these of the tools it would have. Use it for tasks that must not change anything.'),
});

/** Input of a `task` call that passed the schema. */
export type TaskInput = z.output<typeof taskSchema>;

export const taskTool = defineTool({
  name: TASK_TOOL,
  effect: 'workflow',
  description: `Hands a task to a new agent and returns its final answer.

The agent starts with an empty context: it sees your prompt and nothing else of this conversation. It cannot ask you or the user anything, so the prompt must stand on its own: say what is wanted and why, what you already know, which files or folders matter, what must not be touched, and exactly what the answer should contain.

Only the text of its last message comes back to you; what it read and did on the way does not. The user does not see it either, so pass on what matters. It works in the same workspace and may never do more than you may.

Several calls in one turn run at the same time, and all of them finish before you go on. Give parallel agents separate files to change.

Delegate what is large and separate: a broad search, an independent part of the work, a check with fresh eyes. Do small steps yourself: reading a known file or one search is quicker without an agent.`,
  schema: taskSchema,
  summarize: ({ description }) => `task ${description}`,
  actions: ({ agent_type }) =>
    Promise.resolve([{ tool: TASK_TOOL, access: 'spawn' as const, agentType: agent_type ?? DEFAULT_AGENT_TYPE }]),
});

/** Counts without Buffer: this file must load where Node is not. */
function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

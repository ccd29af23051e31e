import { z } from 'zod';
import { summaryLine } from './text.ts';
import type { JobTool } from './tool.ts';

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 6 * 60 * 60 * 1000;
/** The kernel takes at most 128 KiB in one argument. */
const MAX_COMMAND_CHARACTERS = 30_000;

const schema = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(MAX_COMMAND_CHARACTERS)
    .regex(/^[^\0]*$/, 'must not contain NUL')
    .describe('Shell command.'),
  timeout_ms: z
    .number()
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe(`Time limit in milliseconds. Default ${DEFAULT_TIMEOUT_MS}, at most ${MAX_TIMEOUT_MS} (6 hours).`),
});

export const bashTool: JobTool<typeof schema> = {
  name: 'bash',
  effect: 'job',
  schema,
  description: [
    'Runs a command with bash in the workspace and answers its output and exit code. Each call starts a fresh shell:',
    'variables and the current folder are not kept. Standard input is empty. In the sandbox only the workspace and a',
    'scratch home can be written, and there is no network unless it was allowed. Everything the command started is',
    'ended with it, also at the time limit. If it was interrupted you are told so; it is never run again by itself.',
    'To look at and change files use read, glob, grep, edit and write.',
  ].join(' '),
  summarize: (input) => summaryLine(`bash ${input.command}`),
  actions: async (input) => [{ tool: 'bash', access: 'execute', command: input.command }],
  timeoutMs: (input) => input.timeout_ms ?? DEFAULT_TIMEOUT_MS,
  command: (input) => input.command,
};

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { openCallJournal, type CallJournal, type ClaimOwner } from '../../src/effects/journal.ts';
import type { CallRun } from '../../src/effects/run-call.ts';
import { ownIdentity } from '../../src/process-identity.ts';
import type { Policy } from '../../src/policy/policy.ts';
import { hashFile, sha256 } from '../../src/tools/atomic-write.ts';
import { ToolError, type FileTool, type JobTool, type ReadTool, type ToolContext } from '../../src/tools/tool.ts';

const schema = z.object({ path: z.string(), line: z.string(), size: z.number().optional() });

/** Appends a line: a change that shows when it is made twice. `size` makes the file large. */
export const appendTool: FileTool<typeof schema> = {
  name: 'edit',
  description: 'Appends a line.',
  schema,
  effect: 'file',
  summarize: ({ path }) => `append ${path}`,
  actions: async ({ path }) => [{ tool: 'edit', access: 'write', path }],
  prepare: async ({ path, line, size = 0 }, { policy }) => {
    const preSha256 = await hashFile(path, policy.roots);
    const before = preSha256 === null ? Buffer.alloc(0) : await readFile(path);
    const content = Buffer.concat([before, Buffer.from(`${line}\n`), Buffer.alloc(size, 'x')]);
    const text = `appended to ${sha256(before).slice(0, 6)}`;
    return { path, preSha256, content, mode: 0o644, result: { text, isError: false } };
  },
};

const commandSchema = z.object({ command: z.string() });

export const commandTool: JobTool<typeof commandSchema> = {
  name: 'bash',
  description: 'Runs a command.',
  schema: commandSchema,
  effect: 'job',
  summarize: ({ command }) => command,
  actions: async ({ command }) => [{ tool: 'bash', access: 'execute', command }],
  timeoutMs: () => 20_000,
  command: ({ command }) => command,
};

/** A read tool that counts its runs. */
export function createLookTool(look: () => string): ReadTool<z.ZodObject> {
  return {
    name: 'read',
    description: 'Looks.',
    schema: z.object({}),
    effect: 'none',
    summarize: () => 'look',
    actions: async () => [],
    execute: async () => ({ text: look(), isError: false }),
  };
}

export function newsTool(text: string): ReadTool<z.ZodObject> {
  return {
    ...createLookTool(() => text),
    execute: async () => {
      throw new ToolError(text);
    },
  };
}

export function testPolicy(workspace: string, more: Partial<Policy> = {}): Policy {
  return {
    version: 1,
    layers: [],
    sandbox: 'workspace-write',
    roots: [workspace],
    network: false,
    approvals: 'ask',
    tools: ['bash', 'edit', 'read'],
    models: [],
    hops: 0,
    limits: { maxTurns: 10, timeoutMs: 60_000 },
    spawn: 'allow',
    ...more,
  };
}

export function testOwner(attempt = 1): ClaimOwner {
  const nonce = `${process.pid}-${attempt}-${Math.random()}`;
  return { workflowRunId: 'wf', activityId: 't1.0', attempt, process: ownIdentity(), nonce };
}

interface Options {
  readonly folder: string;
  readonly workspace: string;
  readonly tool: CallRun['tool'];
  readonly input: unknown;
}

/** A run of a call with what an activity would give it. */
export function testRun({ folder, workspace, tool, input }: Options, more: Partial<CallRun> = {}): CallRun {
  const context: ToolContext = {
    ...{ runId: 'run', agentId: 'agent', callId: 't1.0', workspace, policy: testPolicy(workspace), reads: new Map() },
    readable: [],
    signal: new AbortController().signal,
    progress: () => {},
    spill: async () => join(folder, 'spilled'),
  };
  const journal = openCallJournal(folder);
  return { tool, input, context, journal, owner: testOwner(), mayAct: async () => true, ...more };
}

/** A journal whose process dies (SIGKILL) right before or right after one of its steps. */
export function dyingJournal(journal: CallJournal, step: string): CallJournal {
  const die = (when: string) => {
    if (when === step) process.kill(process.pid, 'SIGKILL');
  };
  const around =
    <Arguments extends unknown[], Result>(name: string, act: (...given: Arguments) => Promise<Result>) =>
    async (...given: Arguments): Promise<Result> => {
      die(`before ${name}`);
      const result = await act(...given);
      die(`after ${name}`);
      return result;
    };
  return {
    ...journal,
    kept: around('kept', journal.kept),
    keep: around('keep', journal.keep),
    claim: around('claim', journal.claim),
    readIntent: around('readIntent', journal.readIntent),
    writeIntent: around('writeIntent', journal.writeIntent),
    holds: around('holds', journal.holds),
  };
}

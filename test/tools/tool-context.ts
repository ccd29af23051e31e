import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { rootPolicy } from '../../src/policy/defaults.ts';
import type { Layer } from '../../src/policy/policy.ts';
import { replaceFile } from '../../src/tools/atomic-write.ts';
import type { FileTool, ReadSet, ToolContext, ToolResult } from '../../src/tools/tool.ts';

type Writable = Map<string, { sha256: string; whole: boolean }>;

/** A fresh workspace with an agent whose read set grows as it does in a run. */
export interface TestAgent {
  readonly workspace: string;
  readonly context: ToolContext;
  path(name: string): string;
  put(name: string, content: string | Buffer): string;
  /** Takes over what a result says the model has seen. */
  saw(result: ToolResult): ToolResult;
  /** Prepares and makes a change, as the effect journal does. */
  apply<Input>(tool: Pick<FileTool, 'prepare'>, input: Input): Promise<ToolResult>;
}

export function freshFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'errand-tools-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function newAgent(
  options: { readonly workspace?: string; readonly roots?: readonly string[]; readonly layer?: Partial<Layer> } = {},
): TestAgent {
  const workspace = options.workspace ?? join(freshFolder(), 'workspace');
  mkdirSync(workspace, { recursive: true });
  const reads: Writable = new Map();
  const layers: Layer[] = [{ owner: 'user', base: workspace, deny: [], ask: [], allow: [], ...options.layer }];
  const policy = rootPolicy({
    workspace,
    roots: options.roots ?? [workspace],
    approvals: 'ask',
    models: ['m'],
    layers,
  });
  const context = newContext(workspace, policy, reads);
  const agent: TestAgent = {
    workspace,
    context,
    path: (name) => join(workspace, name),
    put(name, content) {
      mkdirSync(dirname(join(workspace, name)), { recursive: true });
      writeFileSync(join(workspace, name), content);
      return join(workspace, name);
    },
    saw(result) {
      const read = result.facts?.read;
      if (read !== undefined) reads.set(read.path, read);
      return result;
    },
    async apply(tool, input) {
      const change = await tool.prepare(input, context);
      await replaceFile(change, policy.roots);
      return agent.saw(change.result);
    },
  };
  return agent;
}

function newContext(workspace: string, policy: ToolContext['policy'], reads: ReadSet): ToolContext {
  return {
    ...{ runId: 'run', agentId: 'run', callId: 't1.0', workspace, policy, reads },
    readable: [],
    signal: new AbortController().signal,
    progress: () => undefined,
    spill: async () => join(workspace, 'unused'),
  };
}

export function mkfifo(path: string): void {
  execFileSync('mkfifo', [path]);
}

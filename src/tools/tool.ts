import type { z } from 'zod';
import type { Action, Policy } from '../policy/policy.ts';
import type { CallKind } from '../protocol.ts';

/** What a tool learned or changed, kept with the result; the read set is derived from it. */
export interface ToolFacts {
  /** A file whose content the model has now seen; `whole` is false for a partial view. */
  readonly read?: { readonly path: string; readonly sha256: string; readonly whole: boolean };
  /** A file change; `preSha256` is null for a new file. */
  readonly wrote?: {
    readonly path: string;
    readonly preSha256: string | null;
    readonly postSha256: string;
    readonly added: number;
    readonly removed: number;
  };
  readonly exitCode?: number;
  /** Where the whole text is when `text` was cut; absolute path below the run's `results/` folder. */
  readonly spilledTo?: string;
}

/** What a call gave back. `text` is bounded, well-formed Unicode without NUL. */
export interface ToolResult {
  readonly text: string;
  readonly isError: boolean;
  readonly facts?: ToolFacts;
}

/** Real path -> what this agent last saw of it. Fresh for every agent, derived from its own transcript. */
export type ReadSet = ReadonlyMap<string, { readonly sha256: string; readonly whole: boolean }>;

/** What a call may use. */
export interface ToolContext {
  readonly runId: string;
  readonly agentId: string;
  readonly callId: string;
  /** Absolute real path of the workspace; relative paths start here. */
  readonly workspace: string;
  readonly policy: Policy;
  /** Folders of errand's own that the agent may look into, such as that of its long results; never written by a tool. */
  readonly readable: readonly string[];
  readonly reads: ReadSet;
  readonly signal: AbortSignal;
  /** Shows a line of progress in the activity's heartbeat (at most 1 kB). */
  progress(line: string): void;
  /** Stores text too long for the model; answers the absolute path. Idempotent per call. */
  spill(text: string | Buffer): Promise<string>;
}

/** A file change that is computed but not yet made; the effect journal applies it at most once. */
export interface FileChange {
  /** Absolute real path. */
  readonly path: string;
  /** Hash of what is there now; null: nothing. */
  readonly preSha256: string | null;
  readonly content: Buffer;
  /** Permission bits for the new file. */
  readonly mode: number;
  /** What the model is told once the change is made. */
  readonly result: ToolResult;
}

interface ToolBase<Schema extends z.ZodType> {
  /** snake_case, as the model sees it. */
  readonly name: string;
  /** Words for the model. */
  readonly description: string;
  readonly schema: Schema;
  /** One line for people, at most 100 bytes: `edit src/a.ts`. */
  summarize(input: z.output<Schema>): string;
  /** What the policy is asked about; paths are made real here. Throws ToolError for a path that cannot be. */
  actions(input: z.output<Schema>, context: ToolContext): Promise<readonly Action[]>;
}

/** Runs again without harm: its kept result is only a memo. */
export interface ReadTool<Schema extends z.ZodType = z.ZodType> extends ToolBase<Schema> {
  readonly effect: 'none';
  execute(input: z.output<Schema>, context: ToolContext): Promise<ToolResult>;
}

/** Changes one file through the effect journal. */
export interface FileTool<Schema extends z.ZodType = z.ZodType> extends ToolBase<Schema> {
  readonly effect: 'file';
  prepare(input: z.output<Schema>, context: ToolContext): Promise<FileChange>;
}

/** Runs as a claimed job that outlives its worker. */
export interface JobTool<Schema extends z.ZodType = z.ZodType> extends ToolBase<Schema> {
  readonly effect: 'job';
  /** Wall clock of the job. */
  timeoutMs(input: z.output<Schema>): number;
  command(input: z.output<Schema>): string;
}

/** Handled by the workflow: `todo_write` and `task`. */
export interface WorkflowTool<Schema extends z.ZodType = z.ZodType> extends ToolBase<Schema> {
  readonly effect: 'workflow';
}

export type Tool<Schema extends z.ZodType = z.ZodType> =
  ReadTool<Schema> | FileTool<Schema> | JobTool<Schema> | WorkflowTool<Schema>;

/** Keeps the schema's type through the definition. */
export function defineTool<Schema extends z.ZodType, Defined extends Tool<Schema>>(
  tool: Defined & { schema: Schema },
): Defined {
  return tool;
}

/** News for the model: becomes an error result that says what to do next. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

export function callKind(tool: Tool): CallKind {
  if (tool.name === 'task') return 'task';
  if (tool.effect === 'workflow') return 'plan';
  return tool.effect === 'none' ? 'read' : 'effect';
}

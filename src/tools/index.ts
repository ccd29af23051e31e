import { z } from 'zod';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { globTool } from './glob.ts';
import { grepTool } from './grep.ts';
import { readTool } from './read.ts';
import { taskTool } from './task.ts';
import { todoWriteTool } from './todo-write.ts';
import type { Tool } from './tool.ts';
import { writeTool } from './write.ts';

/** Every tool, in the order in which they are offered: a fixed order keeps the model's cached prefix valid. */
export const TOOLS: readonly Tool[] = [
  readTool,
  writeTool,
  editTool,
  globTool,
  grepTool,
  bashTool,
  todoWriteTool,
  taskTool,
];

/** Names of all tools, in the order in which they are offered. */
export const TOOL_NAMES: readonly string[] = TOOLS.map((tool) => tool.name);

/** What the model is told about a tool. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly input_schema: { readonly type: 'object' } & Readonly<Record<string, unknown>>;
}

export function toolByName(name: string): Tool | undefined {
  return TOOLS.find((tool) => tool.name === name);
}

/** The named tools as the model's server takes them, in the order of `TOOLS`; same names, same bytes. */
export function toolSchemas(names: readonly string[]): readonly ToolSchema[] {
  const unknown = names.filter((name) => toolByName(name) === undefined);
  if (unknown.length > 0) {
    throw new Error(`No such tool: ${unknown.join(', ')}. There are: ${TOOLS.map((tool) => tool.name).join(', ')}`);
  }
  return TOOLS.filter((tool) => names.includes(tool.name)).map(toToolSchema);
}

function toToolSchema(tool: Tool): ToolSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(tool.schema, { io: 'input' });
  return { name: tool.name, description: tool.description, input_schema: { ...schema, type: 'object' } };
}

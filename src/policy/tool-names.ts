/** Every tool that errand itself has, as the model sees it. */
export const BUILT_IN_TOOLS = ['bash', 'edit', 'glob', 'grep', 'read', 'task', 'todo_write', 'write'] as const;
export type BuiltInTool = (typeof BUILT_IN_TOOLS)[number];

/** Stands for every name in `policy.tools` and `policy.models`. */
export const ANY_NAME = '*';

/** The tool a person meant: case and separators do not count (`TodoWrite`, `todo-write`), `Agent` is `task`. */
export function builtInTool(name: string): BuiltInTool | undefined {
  const plain = plainName(name);
  return plain === 'agent' ? 'task' : BUILT_IN_TOOLS.find((tool) => plainName(tool) === plain);
}

/** How rules spell a tool: `todo_write` -> `TodoWrite`. */
export function ruleName(tool: string): string {
  if (builtInTool(tool) !== tool) return tool;
  return tool.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** For comparing names that people type. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/[-_\s]/g, '');
}

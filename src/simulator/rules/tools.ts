import { isObject } from '../json.ts';
import { blocksOf } from '../wire.ts';
import type { RequestBody } from '../wire.ts';
import { unknownFieldProblem } from './fields.ts';

export const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;

const KNOWN = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'cache_control',
  'strict',
  'eager_input_streaming',
  'input_examples',
  'defer_loading',
  'allowed_callers',
]);

export function toolsProblem(body: RequestBody): string | undefined {
  for (const [index, tool] of (body.tools ?? []).entries()) {
    const problem = toolProblem(tool, `tools.${index}`);
    if (problem !== undefined) return problem;
  }
  return duplicateProblem(body) ?? choiceProblem(body) ?? undefinedToolsProblem(body);
}

function toolProblem(tool: unknown, path: string): string | undefined {
  if (!isObject(tool)) return `${path}: Input should be a valid dictionary`;
  const { name, type, input_schema: schema, description } = tool;
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    return `${path}.custom.name: String should match pattern '${TOOL_NAME.source}', but it is ${JSON.stringify(name)}`;
  }
  if (type !== undefined && type !== null && type !== 'custom') return undefined;
  if (description !== undefined && typeof description !== 'string') {
    return `${path}.custom.description: Input should be a valid string`;
  }
  if (!isObject(schema)) return `${path}.custom.input_schema: Field required`;
  if (schema.type !== 'object') return `${path}.custom.input_schema.type: Input should be 'object'`;
  return unknownFieldProblem(tool, KNOWN, `${path}.custom.`);
}

function duplicateProblem({ tools = [] }: RequestBody): string | undefined {
  const names = tools.map((tool) => tool.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? undefined : `tools: Tool names must be unique, but "${twice}" appears twice`;
}

function choiceProblem({ tools = [], tool_choice: choice }: RequestBody): string | undefined {
  if (choice === undefined) return undefined;
  if (!isObject(choice) || !['auto', 'any', 'tool', 'none'].includes(choice.type)) {
    return `tool_choice: Input should be of type 'auto', 'any', 'tool' or 'none'`;
  }
  if (tools.length === 0 && choice.type !== 'none') return 'tool_choice: may only be specified while providing tools';
  const isKnown = choice.type !== 'tool' || tools.some((tool) => tool.name === choice.name);
  return isKnown ? undefined : `tool_choice: Tool '${String(choice.name)}' not found in provided tools`;
}

function undefinedToolsProblem({ tools = [], messages }: RequestBody): string | undefined {
  const isToolBlock = (type: string): boolean => type === 'tool_use' || type === 'tool_result';
  const hasToolBlocks = messages.some(({ content }) => blocksOf(content).some((block) => isToolBlock(block.type)));
  return hasToolBlocks && tools.length === 0
    ? 'tools: Requests which include `tool_use` or `tool_result` blocks must define tools'
    : undefined;
}

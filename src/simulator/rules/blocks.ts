import { isObject } from '../json.ts';
import type { JsonObject } from '../json.ts';
import { unknownFieldProblem } from './fields.ts';
import { TOOL_NAME } from './tools.ts';

const TOOL_USE_ID = /^[a-zA-Z0-9_-]+$/;

/** Fields of the blocks that are checked; other block types pass as they are. */
const FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  text: new Set(['type', 'text', 'cache_control', 'citations']),
  tool_use: new Set(['type', 'id', 'name', 'input', 'cache_control', 'caller', 'toolset_name']),
  tool_result: new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control', 'toolset_name']),
  thinking: new Set(['type', 'thinking', 'signature']),
  redacted_thinking: new Set(['type', 'data']),
};

const OTHER_TYPES = new Set([
  'image',
  'document',
  'search_result',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'container_upload',
]);

/** Which blocks a role may send; what is not listed here any role may. */
const ROLE_OF: Readonly<Record<string, string>> = {
  tool_use: 'assistant',
  thinking: 'assistant',
  redacted_thinking: 'assistant',
  tool_result: 'user',
};

export function blockProblem(block: unknown, role: string, path: string): string | undefined {
  if (!isObject(block) || typeof block.type !== 'string') return `${path}.type: Field required`;
  const type = block.type;
  const known = FIELDS[type];
  if (!known) return OTHER_TYPES.has(type) ? undefined : `${path}: Input tag '${type}' does not match any expected tag`;
  const owner = ROLE_OF[type];
  if (owner !== undefined && owner !== role) return `${path}: \`${type}\` blocks can only be in \`${owner}\` messages`;
  return unknownFieldProblem(block, known, `${path}.${type}.`) ?? fieldProblem(type, block, path);
}

function fieldProblem(type: string, block: JsonObject, path: string): string | undefined {
  if (type === 'text') return textProblem(block, path);
  if (type === 'tool_use') return toolUseProblem(block, path);
  if (type === 'tool_result') return toolResultProblem(block, path);
  const field = type === 'thinking' ? ['thinking', 'signature'] : ['data'];
  const missing = field.find((name) => typeof block[name] !== 'string');
  return missing === undefined ? undefined : `${path}.${type}.${missing}: Field required`;
}

function textProblem({ text }: JsonObject, path: string): string | undefined {
  if (typeof text !== 'string') return `${path}.text.text: Field required`;
  if (text === '') return `${path}: text content blocks must be non-empty`;
  return text.trim() === '' ? `${path}: text content blocks must contain non-whitespace text` : undefined;
}

function toolUseProblem({ id, name, input }: JsonObject, path: string): string | undefined {
  if (typeof id !== 'string' || !TOOL_USE_ID.test(id)) {
    return `${path}.tool_use.id: String should match pattern '${TOOL_USE_ID.source}', but it is ${JSON.stringify(id)}`;
  }
  if (typeof name !== 'string' || !TOOL_NAME.test(name)) {
    return `${path}.tool_use.name: String should match pattern '${TOOL_NAME.source}', but it is ${JSON.stringify(name)}`;
  }
  return isObject(input) ? undefined : `${path}.tool_use.input: Input should be a valid dictionary`;
}

function toolResultProblem(block: JsonObject, path: string): string | undefined {
  const { tool_use_id: id, content, is_error: isError } = block;
  if (typeof id !== 'string') return `${path}.tool_result.tool_use_id: Field required`;
  if (isError !== undefined && typeof isError !== 'boolean') {
    return `${path}.tool_result.is_error: Input should be a valid boolean`;
  }
  if (content === undefined || typeof content === 'string') return undefined;
  if (!Array.isArray(content)) return `${path}.tool_result.content: Input should be a valid string or list`;
  for (const [index, part] of content.entries()) {
    const at = `${path}.tool_result.content.${index}`;
    const problem = isObject(part) && part.type === 'text' ? textProblem(part, at) : undefined;
    if (problem !== undefined) return problem;
  }
  return undefined;
}

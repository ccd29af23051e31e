import { z } from 'zod';
import { headOf } from '../store/text.ts';
import { visibleText } from './text.ts';
import type { Tool } from './tool.ts';

/** Valid input, or what is wrong with it in words the model can act on. */
export type ParsedInput<Schema extends z.ZodType> = { readonly input: z.output<Schema> } | { readonly problem: string };

/** Checks what the model sent. The problem names each field, what came, and what is valid, one a line. */
export function parseToolInput<Schema extends z.ZodType>(
  tool: Pick<Tool<Schema>, 'name' | 'schema'>,
  input: unknown,
): ParsedInput<Schema> {
  const parsed = tool.schema.safeParse(input);
  if (parsed.success) return { input: parsed.data };
  const { issues } = parsed.error;
  const lines = issues.slice(0, MAX_SHOWN).map((issue) => issueLine(issue, input, tool.schema));
  const more = issues.length > MAX_SHOWN ? [`- and ${issues.length - MAX_SHOWN} more`] : [];
  return { problem: `The input of ${tool.name} is not valid:\n${[...lines, ...more].join('\n')}` };
}

/** Of wrong fields, and of unknown keys: the answer stays in the conversation, and must not be as large as the input. */
const MAX_SHOWN = 10;

function issueLine(issue: z.core.$ZodIssue, input: unknown, schema: z.ZodType): string {
  const field = fieldName(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const unknown = issue.keys.slice(0, MAX_SHOWN).map((key) => shownValue(key));
    if (issue.keys.length > MAX_SHOWN) unknown.push(`and ${issue.keys.length - MAX_SHOWN} more`);
    return `- ${field}: unknown ${unknown.join(', ')}; valid fields are ${validFields(schema, issue.path).join(', ')}`;
  }
  const value = valueAt(input, issue.path);
  return `- ${field}: ${value === undefined ? 'missing' : `got ${shownValue(value)}`}; ${expectation(issue)}`;
}

/** A message written for a field says more than its limit. */
function expectation(issue: z.core.$ZodIssue): string {
  if (issue.code === 'custom' || !/^(Invalid|Too )/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${issue.expected}`;
    case 'invalid_value':
      return `expected one of ${issue.values.map((value) => shownValue(value)).join(', ')}`;
    case 'too_small':
      return `expected at least ${issue.minimum}${unit(issue.origin)}`;
    case 'too_big':
      return `expected at most ${issue.maximum}${unit(issue.origin)}`;
    default:
      return issue.message;
  }
}

function unit(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' items' : '';
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'input';
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${String(key)}`))
    .join('');
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    input,
  );
}

/** Names of the fields at a place of the schema, read from its JSON form. */
function validFields(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let at: unknown = z.toJSONSchema(schema, { io: 'input' });
  for (const key of path) at = valueAt(at, typeof key === 'number' ? ['items'] : ['properties', key]);
  return Object.keys(valueAt(at, ['properties']) ?? {});
}

function shownValue(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return visibleText(text.length <= 60 ? text : `${headOf(text, 60)}…`);
}

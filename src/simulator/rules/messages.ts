import { isObject } from '../json.ts';
import { blockProblem } from './blocks.ts';
import { unknownFieldProblem } from './fields.ts';

const ROLES = new Set(['user', 'assistant', 'system']);
const KNOWN = new Set(['role', 'content']);

/** Shape of the messages: roles, content, and each block on its own. */
export function messagesProblem(messages: unknown): string | undefined {
  if (!Array.isArray(messages)) return 'messages: Input should be a valid list';
  if (messages.length === 0) return 'messages: at least one message is required';
  for (const [index, message] of messages.entries()) {
    const problem = messageProblem(message, index, index === messages.length - 1);
    if (problem !== undefined) return problem;
  }
  const first: unknown = messages[0];
  return isObject(first) && first.role === 'user' ? undefined : 'messages: first message must use the "user" role';
}

function messageProblem(message: unknown, index: number, isLast: boolean): string | undefined {
  const path = `messages.${index}`;
  if (!isObject(message)) return `${path}: Input should be a valid dictionary`;
  const { role, content } = message;
  if (typeof role !== 'string' || !ROLES.has(role)) return `${path}.role: Input should be 'user' or 'assistant'`;
  if (typeof content !== 'string' && !Array.isArray(content)) {
    return `${path}.content: Input should be a valid string or list`;
  }
  if (content.length === 0 && !(isLast && role === 'assistant')) {
    return `${path}: all messages must have non-empty content except for the optional final assistant message`;
  }
  return (
    unknownFieldProblem(message, KNOWN, `${path}.`) ??
    contentProblem(content, role, path) ??
    (isLast && role === 'assistant' ? trailingSpaceProblem(content) : undefined)
  );
}

function contentProblem(content: string | readonly unknown[], role: string, path: string): string | undefined {
  if (typeof content === 'string') {
    return content !== '' && content.trim() === ''
      ? `${path}: text content must contain non-whitespace text`
      : undefined;
  }
  for (const [index, block] of content.entries()) {
    const problem = blockProblem(block, role, `${path}.content.${index}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function trailingSpaceProblem(content: string | readonly unknown[]): string | undefined {
  const last = typeof content === 'string' ? { text: content } : content.at(-1);
  const text = isObject(last) && typeof last.text === 'string' ? last.text : '';
  return /\s$/.test(text) ? 'messages: final assistant content cannot end with trailing whitespace' : undefined;
}

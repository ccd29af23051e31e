import { isObject } from '../json.ts';

/** In `u` mode this matches only surrogates without their other half. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The whole body, keys included, is well-formed Unicode without NUL. */
export function unicodeProblem(value: unknown, path = ''): string | undefined {
  if (typeof value === 'string') return textProblem(value, path);
  if (Array.isArray(value)) return firstProblem(value.entries(), path);
  return isObject(value) ? firstProblem(Object.entries(value), path) : undefined;
}

function firstProblem(entries: Iterable<[string | number, unknown]>, path: string): string | undefined {
  for (const [key, item] of entries) {
    const at = path ? `${path}.${key}` : String(key);
    const problem = textProblem(String(key), path) ?? unicodeProblem(item, at);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function textProblem(text: string, path: string): string | undefined {
  if (LONE_SURROGATE.test(text)) return `${path}: the text is not valid Unicode: it has a lone surrogate`;
  return text.includes('\u0000') ? `${path}: the text must not contain U+0000` : undefined;
}

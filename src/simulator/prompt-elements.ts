import { canonicalJson, sha256 } from './json.ts';
import { blocksOf } from './wire.ts';
import type { Block, RequestBody, ToolDefinition } from './wire.ts';

/** One piece of a prompt, in the order the cache sees them: tools, system, then message blocks. */
export interface PromptElement {
  /** Hash of everything up to and including this element. */
  readonly prefix: string;
  readonly tokens: number;
  readonly isMarked: boolean;
}

export type PromptParts = Pick<RequestBody, 'model' | 'messages' | 'system' | 'tools' | 'cache_control'>;

/** The elements of a body; kept with it, as hashing a long conversation is the dearest part of a request. */
export function toPromptElements(body: PromptParts): readonly PromptElement[] {
  const known = KNOWN.get(body);
  if (known) return known;
  const elements = computeElements(body);
  KNOWN.set(body, elements);
  return elements;
}

const KNOWN = new WeakMap<PromptParts, readonly PromptElement[]>();

function computeElements(body: PromptParts): PromptElement[] {
  let prefix = sha256(body.model);
  const elements: PromptElement[] = [];
  const add = (kind: string, part: Block | ToolDefinition): void => {
    const { cache_control: mark, ...content } = part;
    const text = canonicalJson(content);
    prefix = sha256(`${prefix}${kind}${text}`);
    elements.push({ prefix, tokens: isImage(part) ? IMAGE_TOKENS : toTokens(text.length), isMarked: isMark(mark) });
  };
  for (const tool of body.tools ?? []) add('tool', tool);
  for (const block of blocksOf(body.system)) add('system', block);
  for (const message of body.messages) for (const block of blocksOf(message.content)) add(message.role, block);
  return isMark(body.cache_control) ? markLast(elements) : elements;
}

/** About four characters a token; the same content always gives the same number. */
export function estimatePromptTokens(body: PromptParts): number {
  return toPromptElements(body).reduce((sum, element) => sum + element.tokens, 0);
}

export function toTokens(characters: number): number {
  return Math.ceil(characters / 4);
}

function isImage({ type }: Block | ToolDefinition): boolean {
  return type === 'image' || type === 'document';
}

const IMAGE_TOKENS = 1500;

function isMark(mark: unknown): boolean {
  return mark !== undefined && mark !== null;
}

function markLast(elements: readonly PromptElement[]): PromptElement[] {
  return elements.map((element, index) => (index === elements.length - 1 ? { ...element, isMarked: true } : element));
}

import { toPromptElements } from './prompt-elements.ts';
import type { PromptElement, PromptParts } from './prompt-elements.ts';
import type { Usage } from './wire.ts';

export type InputUsage = Omit<Usage, 'output_tokens'>;

export interface PromptCache {
  /** What this prompt would cost now. Changes nothing. */
  account(body: PromptParts): InputUsage;
  /** Remembers the marked prefixes; called once the model has begun to answer, not for a refused request. */
  remember(body: PromptParts): void;
}

/** How many elements before a mark are looked at for an older mark, as in the real API. */
const LOOKBACK = 20;

export function createPromptCache(): PromptCache {
  const known = new Set<string>();
  return {
    account: (body) => accountFor(toPromptElements(body), known),
    remember: (body) => {
      for (const element of toPromptElements(body)) if (element.isMarked) known.add(element.prefix);
    },
  };
}

function accountFor(elements: readonly PromptElement[], known: ReadonlySet<string>): InputUsage {
  const lastMark = elements.findLastIndex((element) => element.isMarked);
  const total = tokensUpTo(elements, elements.length - 1);
  const marked = tokensUpTo(elements, lastMark);
  const read = tokensUpTo(elements, lastKnownPrefix(elements, known));
  return {
    input_tokens: total - marked,
    cache_creation_input_tokens: marked - read,
    cache_read_input_tokens: read,
  };
}

function lastKnownPrefix(elements: readonly PromptElement[], known: ReadonlySet<string>): number {
  const isReachable = (index: number): boolean =>
    elements.slice(index, index + LOOKBACK + 1).some((element) => element.isMarked);
  return elements.findLastIndex((element, index) => known.has(element.prefix) && isReachable(index));
}

function tokensUpTo(elements: readonly PromptElement[], index: number): number {
  return elements.slice(0, index + 1).reduce((sum, element) => sum + element.tokens, 0);
}

import { sha256 } from './json.ts';

interface Position {
  readonly conversation: string;
  readonly turn: number;
  readonly index: number;
  /** The reply also had thinking: the id says so, so that a dropped thinking block is noticed without memory. */
  readonly hasThinking: boolean;
}

/** Unique within a conversation, and the same each time the same request is answered. */
export function toToolUseId({ conversation, turn, index, hasThinking }: Position): string {
  return `toolu_${hasThinking ? THINKING : 's'}${sha256(`${conversation}/${turn}/${index}`).slice(0, 22)}`;
}

export function hasThinkingMark(id: string): boolean {
  return id.startsWith(`toolu_${THINKING}`);
}

const THINKING = 't';

import { createHash } from 'node:crypto';
import type { SealedResult } from '../store/records.ts';

/** From here on the model is told that it repeats itself. */
const NOTE_AT = 3;
/** From here on the agent ends as `failed` (`repeated_call`). */
const STOP_AT = 6;

/** Same call and same result give the same fingerprint. */
export function fingerprint(name: string, input: unknown, resultText: string): string {
  return createHash('sha256')
    .update(JSON.stringify([name, input, resultText]))
    .digest('hex')
    .slice(0, 32);
}

/** How many turns in a row this fingerprint was seen, the new one included. */
export function streakOf(print: string, previous: readonly SealedResult[] | undefined): number {
  return (
    1 + Math.max(0, ...(previous ?? []).filter((result) => result.fingerprint === print).map(({ streak }) => streak))
  );
}

/** What the model is told about calls that go round in circles; undefined when none does. */
export function repeatNote(results: readonly SealedResult[]): string | undefined {
  const repeated = results.filter(({ streak }) => streak >= NOTE_AT);
  if (repeated.length === 0) return undefined;
  const names = repeated.map(({ callId, streak }) => `${callId} (${streak} times)`).join(', ');
  return `Note: the same call gave the same result in several turns in a row: ${names}. Try something else, or finish with what you have.`;
}

export function isGoingInCircles(results: readonly SealedResult[] | undefined): boolean {
  return (results ?? []).some(({ streak }) => streak >= STOP_AT);
}

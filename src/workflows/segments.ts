import type { Call } from '../protocol.ts';

/** Neighbouring calls that run together; an effect is always alone. */
export interface Segment {
  readonly kind: 'read' | 'effect' | 'task';
  readonly calls: readonly Call[];
}

/**
 * Cuts a turn's calls in the model's order: neighbouring reads share an activity, neighbouring tasks run side by side,
 * an effect stands alone. Calls that need no dispatch (wrong input, todo list) separate nothing.
 */
export function toSegments(calls: readonly Call[]): readonly Segment[] {
  const segments: { kind: Segment['kind']; calls: Call[] }[] = [];
  for (const call of calls) {
    if (call.problem || call.kind === 'plan') continue;
    const last = segments.at(-1);
    if (last && last.kind === call.kind && call.kind !== 'effect') last.calls.push(call);
    else segments.push({ kind: call.kind, calls: [call] });
  }
  return segments;
}

/** Index of a call within its turn, from its name `t<turn>.<index>`. */
export function indexOf(call: Call): number {
  return Number(call.callId.slice(call.callId.indexOf('.') + 1));
}

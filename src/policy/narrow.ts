import { canonicalJson, canonicalNames, canonicalPolicy, canonicalRoots, policyBytes } from './canonical.ts';
import { isInside } from './paths.ts';
import type { Policy, Verdict, Wanted } from './policy.ts';
import { SANDBOX_MODES } from './policy.ts';
import { ANY_NAME } from './tool-names.ts';

/** Strictest first. */
const STRICTNESS: readonly Verdict[] = ['deny', 'ask', 'allow'];

/**
 * The most a child may do that wants `wanted` under a parent with `parent`: union of the layers, minimum of the numbers,
 * intersection of names and roots. A meet: idempotent, commutative, associative and monotone, so the order in which
 * ceilings, users, types and ancestors have their say never matters. What is left out of `wanted` stays the parent's.
 */
export function narrow(parent: Policy, wanted: Wanted): Policy {
  return canonicalPolicy({
    version: 1,
    layers: [...parent.layers, ...(wanted.layers ?? [])],
    sandbox: strictest(SANDBOX_MODES, parent.sandbox, wanted.sandbox),
    roots: wanted.roots === undefined ? parent.roots : intersectRoots(parent.roots, wanted.roots),
    network: parent.network && (wanted.network ?? true),
    approvals: strictest(['deny', 'ask'], parent.approvals, wanted.approvals),
    tools: intersectNames(parent.tools, wanted.tools),
    models: intersectNames(parent.models, wanted.models),
    hops: least('hops', parent.hops, wanted.hops),
    limits: {
      maxTurns: least('limits.maxTurns', parent.limits.maxTurns, wanted.limits?.maxTurns),
      timeoutMs: least('limits.timeoutMs', parent.limits.timeoutMs, wanted.limits?.timeoutMs),
    },
    spawn: strictest(STRICTNESS, parent.spawn, wanted.spawn),
  });
}

/** Whether `child` may do nothing that `parent` may not. */
export function within(child: Policy, parent: Policy): boolean {
  return policyBytes(child) === policyBytes(narrow(parent, child));
}

/** Names the fields in which `child` goes beyond `parent`; undefined if it does not. */
export function whyNotWithin(child: Policy, parent: Policy): string | undefined {
  const most = narrow(parent, child);
  const wanted = canonicalPolicy(child);
  const wider = (Object.keys(most) as (keyof Policy)[])
    .filter((field) => canonicalJson(most[field]) !== canonicalJson(wanted[field]))
    .map((field) => `${field}: ${canonicalJson(wanted[field])} where at most ${canonicalJson(most[field])} is allowed`);
  return wider.length === 0 ? undefined : wider.join('; ');
}

/** Names in both lists; `['*']` stands for all. */
export function intersectNames(names: readonly string[], wanted: readonly string[] = [ANY_NAME]): string[] {
  if (wanted.includes(ANY_NAME)) return canonicalNames(names);
  if (names.includes(ANY_NAME)) return canonicalNames(wanted);
  return canonicalNames(names.filter((name) => wanted.includes(name)));
}

/** Folders below a root of both lists: of two that contain one another the deeper one. */
function intersectRoots(roots: readonly string[], wanted: readonly string[]): string[] {
  return canonicalRoots([
    ...roots.filter((root) => wanted.some((other) => isInside(root, other))),
    ...wanted.filter((root) => roots.some((other) => isInside(root, other))),
  ]);
}

function strictest<Value>(order: readonly Value[], parent: Value, wanted: Value | undefined): Value {
  if (wanted === undefined) return parent;
  return order[Math.min(rank(order, parent), rank(order, wanted))] ?? parent;
}

function rank<Value>(order: readonly Value[], value: Value): number {
  const found = order.indexOf(value);
  if (found < 0) throw new RangeError(`${String(value)} is not one of ${order.join(', ')}`);
  return found;
}

/** Policies come from outside: a value that is no number must not pass as "no limit". */
function least(field: string, parent: number, wanted: number = parent): number {
  if (Number.isFinite(parent) && Number.isFinite(wanted)) return Math.min(parent, wanted);
  throw new RangeError(`policy field ${field} must be a finite number: ${String(parent)}, ${String(wanted)}`);
}

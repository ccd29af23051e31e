import { isInside, plainPath } from './paths.ts';
import type { Layer, Policy } from './policy.ts';
import { ANY_NAME } from './tool-names.ts';

/** JSON with sorted keys and no blanks: equal values have equal bytes. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (isPlainObject(inner) ? sortedKeys(inner) : inner));
}

/** The bytes a policy is stored and hashed as. */
export function policyBytes(policy: Policy): string {
  return canonicalJson(canonicalPolicy(policy));
}

/** Same meaning, one form: sorted, without duplicates, frozen throughout. */
export function canonicalPolicy(policy: Policy): Policy {
  return deepFreeze({
    version: 1,
    layers: canonicalLayers(policy.layers),
    sandbox: policy.sandbox,
    roots: canonicalRoots(policy.roots),
    network: policy.network,
    approvals: policy.approvals,
    tools: canonicalNames(policy.tools),
    models: canonicalNames(policy.models),
    hops: policy.hops,
    limits: { maxTurns: policy.limits.maxTurns, timeoutMs: policy.limits.timeoutMs },
    spawn: policy.spawn,
  });
}

/** Layers of one owner and base become one; that changes no decision, since the strictest rule counts anyway. */
export function canonicalLayers(layers: readonly Layer[]): Layer[] {
  const merged = new Map<string, Layer>();
  for (const layer of layers) {
    const key = canonicalJson([layer.owner, layer.base ?? null]);
    merged.set(key, mergeLayers(merged.get(key), layer));
  }
  return [...merged.entries()]
    .filter(([, { deny, ask, allow }]) => deny.length + ask.length + allow.length > 0)
    .sort(([a], [b]) => compareText(a, b))
    .map(([, layer]) => layer);
}

export function canonicalNames(names: readonly string[]): string[] {
  return names.includes(ANY_NAME) ? [ANY_NAME] : uniqueSorted(names);
}

/** Roots inside another root add nothing. */
export function canonicalRoots(roots: readonly string[]): string[] {
  const plain = uniqueSorted(roots.map(plainPath));
  return plain.filter((root) => !plain.some((other) => other !== root && isInside(root, other)));
}

function mergeLayers(known: Layer | undefined, layer: Layer): Layer {
  return {
    owner: layer.owner,
    ...(layer.base === undefined ? {} : { base: layer.base }),
    deny: uniqueSorted([...(known?.deny ?? []), ...layer.deny]),
    ask: uniqueSorted([...(known?.ask ?? []), ...layer.ask]),
    allow: uniqueSorted([...(known?.allow ?? []), ...layer.allow]),
  };
}

function uniqueSorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort(compareText);
}

/** By code unit, so that no locale changes the bytes. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sortedKeys(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => compareText(a, b)));
}

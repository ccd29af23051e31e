import fc from 'fast-check';
import { canonicalPolicy } from '../../src/policy/canonical.ts';
import type { Action, Layer, Policy, Wanted } from '../../src/policy/policy.ts';
import { SANDBOX_MODES } from '../../src/policy/policy.ts';
import { BUILT_IN_TOOLS } from '../../src/policy/tool-names.ts';

const RULES = [
  'Read',
  'Write',
  'Edit(./src/**)',
  'Read(**/.env)',
  'Read(//w/secret)',
  'Write(*.md)',
  'Grep',
  'Bash',
  'Bash(npm test:*)',
  'Bash(rm:*)',
  'Bash(git status*)',
  'Task',
  'Task(explore)',
  'TodoWrite',
  '*',
];
const PATHS = ['/', '/w', '/w/src', '/w/src/a.ts', '/w/.env', '/w/secret/x.md', '/w/.git/hooks/x', '/other/a.ts'];
const COMMANDS = ['npm test', 'rm -rf x', 'git status; rm x', 'npm test && git status', 'cat /w/.env', 'echo "', 'ls'];
const MODELS = ['large', 'small', '*'];

const rules = fc.array(fc.constantFrom(...RULES), { maxLength: 3 });
const layer: fc.Arbitrary<Layer> = fc.record({
  owner: fc.constantFrom('ceiling', 'user', 'workspace', 'type:a', 'agent:0123456789ab'),
  base: fc.constantFrom('/w', '/w/src'),
  deny: rules,
  ask: rules,
  allow: rules,
});
const fields = {
  layers: fc.array(layer, { maxLength: 3 }),
  sandbox: fc.constantFrom(...SANDBOX_MODES),
  roots: fc.array(fc.constantFrom('/', '/w', '/w/src', '/w/secret', '/other'), { maxLength: 3 }),
  network: fc.boolean(),
  approvals: fc.constantFrom('ask' as const, 'deny' as const),
  tools: fc.oneof(fc.constant(['*']), fc.subarray([...BUILT_IN_TOOLS])),
  models: fc.subarray(MODELS),
  hops: fc.nat(3),
  limits: fc.record({ maxTurns: fc.nat(300), timeoutMs: fc.nat(10_000) }),
  spawn: fc.constantFrom('deny' as const, 'ask' as const, 'allow' as const),
};

/** Any policy, in canonical form. */
export const anyPolicy: fc.Arbitrary<Policy> = fc
  .record({ version: fc.constant(1 as const), ...fields })
  .map(canonicalPolicy);

/** Anything a child may be meant to have. */
export const anyWanted: fc.Arbitrary<Wanted> = fc.record(fields, { requiredKeys: [] });

export const anyAction: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    tool: fc.constantFrom('read', 'glob', 'grep'),
    access: fc.constant('read' as const),
    path: fc.constantFrom(...PATHS),
  }),
  fc.record({
    tool: fc.constantFrom('write', 'edit'),
    access: fc.constant('write' as const),
    path: fc.constantFrom(...PATHS),
  }),
  fc.record({
    tool: fc.constant('bash'),
    access: fc.constant('execute' as const),
    command: fc.constantFrom(...COMMANDS),
  }),
  fc.record({
    tool: fc.constant('task'),
    access: fc.constant('spawn' as const),
    agentType: fc.constantFrom('explore', 'plan'),
  }),
  fc.constant({ tool: 'todo_write', access: 'plan' as const }),
);

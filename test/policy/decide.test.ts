import { describe, expect, it } from 'vitest';
import { decide, decideAll, decisionText, mayShow, offeredTools, whyNotOffered } from '../../src/policy/decide.ts';
import { rootPolicy } from '../../src/policy/defaults.ts';
import type { RootPolicyOptions } from '../../src/policy/defaults.ts';
import { narrow } from '../../src/policy/narrow.ts';
import type { Action, Layer, Policy, SandboxMode } from '../../src/policy/policy.ts';
import { BUILT_IN_TOOLS } from '../../src/policy/tool-names.ts';

const ACTIONS: Readonly<Record<string, Action>> = {
  read: { tool: 'read', access: 'read', path: '/w/a' },
  glob: { tool: 'glob', access: 'read', path: '/w' },
  grep: { tool: 'grep', access: 'read', path: '/w' },
  write: { tool: 'write', access: 'write', path: '/w/a' },
  edit: { tool: 'edit', access: 'write', path: '/w/a' },
  bash: { tool: 'bash', access: 'execute', command: 'npm test' },
  todo_write: { tool: 'todo_write', access: 'plan' },
  task: { tool: 'task', access: 'spawn', agentType: 'explore' },
  mcp: { tool: 'mcp__db__query', access: 'execute' },
};

function policy(options: Partial<RootPolicyOptions> = {}): Policy {
  return rootPolicy({ workspace: '/w', approvals: 'ask', models: ['large'], tools: ['*'], ...options });
}

function layer(owner: string, rules: Partial<Layer>): Layer {
  return { owner, base: '/w', deny: [], ask: [], allow: [], ...rules };
}

function allowed(mode: SandboxMode): string[] {
  return Object.keys(ACTIONS).filter((name) => {
    const action = ACTIONS[name];
    return action && decide(policy({ sandbox: mode }), action).verdict === 'allow';
  });
}

describe('decide without rules', () => {
  it('lets each mode do its share', () => {
    expect(allowed('read-only')).toEqual(['read', 'glob', 'grep', 'todo_write', 'task']);
    expect(allowed('workspace-write')).toEqual(Object.keys(ACTIONS).filter((name) => name !== 'mcp'));
    expect(allowed('full-access')).toEqual(Object.keys(ACTIONS));
  });

  it('keeps paths inside the roots and names the roots', () => {
    const outside: Action = { tool: 'read', access: 'read', path: '/w2/a' };
    expect(decide(policy(), outside)).toMatchObject({ verdict: 'deny', by: 'roots' });
    expect(decisionText(decide(policy(), outside))).toContain('/w2/a is not inside /w');
  });

  it.each(['.claude/agents/x.md', '.errand/x', '.git/hooks/pre-commit', '.git/config', 'sub/.GIT/Hooks/x', '.git'])(
    'keeps %s from being written in any mode',
    (path) => {
      const action: Action = { tool: 'write', access: 'write', path: `/w/${path}` };
      expect(decide(policy({ sandbox: 'full-access' }), action)).toMatchObject({ verdict: 'deny', by: 'protected' });
      expect(mayShow(policy(), 'read', `/w/${path}`)).toBe(true);
    },
  );

  it('lets a workspace inside such a folder be worked on', () => {
    const action: Action = { tool: 'write', access: 'write', path: '/home/me/.claude/copy/a' };
    expect(decide(policy({ workspace: '/home/me/.claude/copy' }), action).verdict).toBe('allow');
  });

  it('needs the tool in the pool', () => {
    const action: Action = { tool: 'bash', access: 'execute', command: 'ls' };
    expect(decide(policy({ tools: ['read'] }), action)).toMatchObject({ verdict: 'deny', by: 'pool' });
  });

  it.each([
    [{ hops: 0 }, 'deny'],
    [{ spawn: 'deny' }, 'deny'],
    [{ spawn: 'ask' }, 'ask'],
    [{}, 'allow'],
  ] as const)('lets %j spawn: %s', (options, verdict) => {
    expect(decide(policy(options), { tool: 'task', access: 'spawn', agentType: 'plan' }).verdict).toBe(verdict);
  });
});

describe('decide with rules', () => {
  const bash: Action = { tool: 'bash', access: 'execute', command: 'npm test' };

  it.each([
    [{ deny: ['Bash'], ask: ['Bash'], allow: ['Bash'] }, 'deny'],
    [{ ask: ['Bash'], allow: ['Bash(npm test)'] }, 'ask'],
    [{ allow: ['Bash(npm test)'] }, 'allow'],
    [{ deny: ['Bash(rm:*)'] }, 'allow'],
  ])('takes the strictest list of one layer: %j gives %s', (rules, verdict) => {
    expect(decide(policy({ layers: [layer('user', rules)] }), bash).verdict).toBe(verdict);
  });

  it('takes the strictest layer, whoever it is from, and names rule and owner', () => {
    const layers = [layer('user', { deny: ['Bash(npm:*)'] }), layer('type:fixer', { allow: ['Bash'] })];
    expect(decide(policy({ layers }), bash)).toEqual({
      verdict: 'deny',
      rule: 'Bash(npm:*)',
      owner: 'user',
      by: 'rule',
    });
  });

  it('denies what only could be asked where nobody answers, and says not to repeat it', () => {
    const decision = decide(policy({ approvals: 'deny', layers: [layer('user', { ask: ['Bash'] })] }), bash);
    expect(decision).toMatchObject({ verdict: 'deny', unanswered: true, rule: 'Bash' });
    expect(decisionText(decision)).toContain('Do not repeat this call');
  });

  it('lets no allow lift a mode', () => {
    const readOnly = policy({ sandbox: 'read-only', layers: [layer('type:fixer', { allow: ['Write', 'Bash', '*'] })] });
    expect(decide(readOnly, { tool: 'write', access: 'write', path: '/w/a' })).toMatchObject({ by: 'mode' });
    expect(decide(readOnly, bash).verdict).toBe('deny');
  });

  it('lets no mode lift a deny', () => {
    const open = policy({ sandbox: 'full-access' });
    const child = narrow(open, { layers: [layer('type:careful', { deny: ['Bash'] })] });
    expect(decide(child, bash)).toMatchObject({ verdict: 'deny', owner: 'type:careful' });
  });

  it('denies a grandchild what the root was denied, and names the root rule', () => {
    const root = policy({ layers: [layer('user', { deny: ['Write', 'Edit', 'Bash'] })] });
    const child = narrow(root, { layers: [layer('type:all', { allow: ['*'] })] });
    const grandchild = narrow(child, { sandbox: 'full-access', tools: ['write'] });
    const decision = decide(grandchild, { tool: 'write', access: 'write', path: '/w/a' });
    expect(decision).toMatchObject({ verdict: 'deny', rule: 'Write', owner: 'user' });
    expect(decisionText(decision)).toContain('the rule Write (user)');
  });

  it('leaves a child its own allows where the parent has no opinion or denies something else', () => {
    const root = policy({ layers: [layer('user', { deny: ['Bash(rm:*)'] })] });
    const child = narrow(root, { layers: [layer('type:tester', { allow: ['Bash(npm test)'] })] });
    expect(decide(child, bash)).toEqual({
      verdict: 'allow',
      rule: 'Bash(npm test)',
      owner: 'type:tester',
      by: 'rule',
    });
    expect(decide(child, { ...bash, command: 'npm test; rm x' }).verdict).toBe('deny');
  });

  it('takes the strictest of all paths of a call', () => {
    const layers = [layer('user', { deny: ['Read(**/.env)'] })];
    const paths = ['/w/link', '/w/.env'].map((path): Action => ({ tool: 'read', access: 'read', path }));
    expect(decideAll(policy({ layers }), paths).verdict).toBe('deny');
    expect(decideAll(policy({ layers }), paths.slice(0, 1)).verdict).toBe('allow');
  });

  it('stops on a malformed rule of any layer', () => {
    expect(() => decide(policy({ layers: [layer('user', { deny: ['Bsh'] })] }), bash)).toThrow(
      'of user cannot be read',
    );
  });
});

describe('offeredTools', () => {
  it('leaves out what can never be allowed', () => {
    const layers = [layer('user', { deny: ['Bash', 'Write(./dist/**)'], ask: ['Edit'] })];
    expect(offeredTools(policy({ layers, hops: 0 }), BUILT_IN_TOOLS)).toEqual([
      'edit',
      'glob',
      'grep',
      'read',
      'todo_write',
      'write',
    ]);
    expect(offeredTools(policy({ sandbox: 'read-only' }), BUILT_IN_TOOLS)).not.toContain('write');
    expect(whyNotOffered(policy({ layers }), 'bash')).toMatchObject({ rule: 'Bash', owner: 'user' });
  });
});

import { describe, expect, it } from 'vitest';
import type { AgentType } from '../../src/agents/agent-type.ts';
import { exploreType, generalPurposeType, rootType } from '../../src/agents/built-in.ts';
import type { ChildPlan, ChildRequest } from '../../src/agents/child.ts';
import { checkChild, planChild } from '../../src/agents/child.ts';
import { decide } from '../../src/policy/decide.ts';
import { rootPolicy } from '../../src/policy/defaults.ts';
import { within } from '../../src/policy/narrow.ts';
import { BUILT_IN_TOOLS } from '../../src/policy/tool-names.ts';

const root = rootPolicy({ workspace: '/w', approvals: 'deny', models: ['large', 'small'] });

function request(change: Partial<ChildRequest> = {}): ChildRequest {
  return {
    parentAgentId: 'job-abc123',
    parentPolicy: root,
    parentHops: root.hops,
    parentDepth: 0,
    parentType: rootType,
    replyRecordId: 'job-abc123:0::1:reply',
    callIndex: 0,
    input: { description: 'Look around', prompt: 'Look.' },
    knownTools: BUILT_IN_TOOLS,
    model: 'large',
    limits: { maxTurns: 200, timeoutMs: 1e9, outageMs: 5_000, historyEvents: 99 },
    trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) },
    workspace: '/w',
    ...change,
  };
}

function asking(input: Partial<ChildRequest['input']>): Partial<ChildRequest> {
  return { input: { description: 'Look around', prompt: 'Look.', ...input } };
}

function plan(change: Partial<ChildRequest> = {}): ChildPlan {
  const planned = planChild(request(change));
  if ('problem' in planned) throw new Error(planned.problem);
  return planned;
}

function problemOf(change: Partial<ChildRequest>): string {
  const planned = planChild(request(change));
  return 'problem' in planned ? planned.problem : `no problem: ${JSON.stringify(planned.tools)}`;
}

function type(change: Partial<AgentType>): AgentType {
  return { ...generalPurposeType, name: 'fixer', ...change };
}

/** The parent's place in the next request. */
function below(parent: ChildPlan): Partial<ChildRequest> {
  return {
    parentAgentId: parent.agentId,
    parentPolicy: parent.policy,
    parentHops: parent.hops,
    parentDepth: parent.depth,
    parentType: parent.agentType,
    limits: parent.limits,
  };
}

describe('planChild', () => {
  it('gives the same call the same ids, another call others', () => {
    const { agentId, spanId, trace } = plan();
    expect(agentId).toMatch(/^[\da-f]{12}$/);
    expect(spanId).toMatch(/^[\da-f]{16}$/);
    expect(trace).toEqual({ traceId: 'a'.repeat(32), spanId, parentSpanId: 'b'.repeat(16) });
    expect(plan()).toEqual(plan());
    expect(plan({ callIndex: 1 }).agentId).not.toBe(agentId);
    expect(plan({ replyRecordId: 'job-abc123:0::2:reply' }).agentId).not.toBe(agentId);
  });

  it('stops at the depth limit even if every agent delegates to its own type', () => {
    let parent = plan();
    let levels = 1;
    expect(parent.tools).toContain('task');
    while (parent.canSpawn) {
      parent = plan(below(parent));
      levels++;
    }
    expect(levels).toBe(2);
    expect(parent.hops).toBe(0);
    expect(parent.tools).not.toContain('task');
    expect(problemOf(below(parent))).toContain('No more levels may be spawned below this agent');
  });

  it('takes the hops from input and policy, whichever is less', () => {
    expect(problemOf({ parentHops: 0 })).toContain('No more levels');
    expect(problemOf({ parentPolicy: { ...root, hops: 0 } })).toContain('No more levels');
    expect(plan({ parentHops: 1 }).hops).toBe(0);
  });

  it('gives a read-only type a policy that denies changes and names the type', () => {
    const child = plan(asking({ agent_type: 'Explore' }));
    expect(child.tools).toEqual(['glob', 'grep', 'read', 'todo_write']);
    expect(child).toMatchObject({ hops: 0, canSpawn: false, agentType: exploreType });
    const decision = decide(child.policy, { tool: 'write', access: 'write', path: '/w/a' });
    expect(decision).toMatchObject({ verdict: 'deny', rule: 'Write', owner: 'type:explore' });
    expect(decide(child.policy, { tool: 'read', access: 'read', path: '/w/a' }).verdict).toBe('allow');
  });

  it('hands on only the tools that the call names, and says below whose doing that was', () => {
    const child = plan(asking({ tool_names: ['Grep', 'TodoWrite', 'Task'] }));
    expect(child.tools).toEqual(['grep', 'task', 'todo_write']);
    expect(decide(child.policy, { tool: 'grep', access: 'read', path: '/w' }).verdict).toBe('allow');
    const grandchild = plan(below(child));
    expect(grandchild.tools).toEqual(['grep', 'todo_write']);
    const decision = decide(grandchild.policy, { tool: 'bash', access: 'execute', command: 'ls' });
    expect(decision).toMatchObject({ verdict: 'deny', owner: 'agent:job-abc123' });
  });

  it('keeps every child within its parent', () => {
    const child = plan();
    const grandchild = plan({ ...below(child), ...asking({ agent_type: 'plan' }) });
    expect(within(child.policy, root)).toBe(true);
    expect(within(grandchild.policy, child.policy)).toBe(true);
  });

  it('limits turns and time by the child default, the type, and the parent', () => {
    expect(plan().limits).toEqual({ maxTurns: 30, timeoutMs: 7_200_000, outageMs: 5_000, historyEvents: 99 });
    const types = [type({ maxTurns: 500 })];
    expect(plan({ types, ...asking({ agent_type: 'fixer' }) }).limits.maxTurns).toBe(200);
  });

  it('takes the model of the type if the run may ask it, else that of the parent', () => {
    const chosen = (model: string): Partial<ChildRequest> => ({
      types: [type({ model })],
      ...asking({ agent_type: 'fixer' }),
    });
    expect(plan().model).toBe('large');
    expect(plan(chosen('inherit')).model).toBe('large');
    expect(plan(chosen('small')).model).toBe('small');
    expect(problemOf(chosen('huge'))).toBe('Agent type fixer wants model huge, this run may ask: large, small.');
  });

  it.each([
    [asking({ agent_type: 'explorer' }), 'There is no agent type "explorer". Valid: general-purpose, explore, plan.'],
    [asking({ tool_names: ['raed'] }), 'tool_names has unknown tools: raed. Valid: bash, edit, glob, grep, read, task'],
    [
      asking({ agent_type: 'explore', tool_names: ['write'] }),
      'tool_names has tools that this agent would not have: write. Valid: glob, grep, read, todo_write.',
    ],
    [{ types: [type({ tools: [] })], ...asking({ agent_type: 'fixer' }) }, 'would have no tools here'],
    [{ types: [type({ tools: ['Raed'] })], ...asking({ agent_type: 'fixer' }) }, 'fixer names unknown tools: Raed'],
    [{ parentType: exploreType }, 'An agent of type explore may not delegate'],
    [{ parentPolicy: { ...root, spawn: 'deny' as const } }, 'Denied by the setting spawn: deny'],
    [
      { parentPolicy: { ...root, layers: [{ owner: 'user', deny: ['Task(general*)'], ask: [], allow: [] }] } },
      'Denied by the rule Task(general*) (user)',
    ],
  ])('refuses with what would be valid: %#', (change, text) => {
    expect(problemOf(change)).toContain(text);
  });

  it('says when a person has to consent', () => {
    expect(plan().needsApproval).toBe(false);
    expect(plan({ parentPolicy: { ...root, approvals: 'ask', spawn: 'ask' } }).needsApproval).toBe(true);
  });
});

describe('checkChild', () => {
  const child = plan();
  const parent = { policy: root, hops: root.hops, depth: 0 };
  const good = { policy: child.policy, hops: child.hops, depth: 1 };

  it('passes what planChild made', () => {
    expect(checkChild({ parent, child: good })).toBeUndefined();
  });

  it.each([
    [parent, { ...good, hops: 2 }, 'hops 2 where at most 1 are left'],
    [parent, { ...good, hops: -1 }, 'hops -1'],
    [parent, { ...good, policy: { ...child.policy, hops: 2 } }, 'policy hops 2'],
    [parent, { ...good, depth: 0 }, 'depth 0 below a parent at depth 0'],
    [parent, { ...good, policy: { ...child.policy, network: true } }, 'network: true where at most false'],
    [{ ...parent, hops: 0 }, good, 'no more levels'],
    [{ ...parent, policy: { ...root, spawn: 'deny' as const } }, good, 'the parent may not delegate'],
  ])('refuses what exceeds the parent: %#', (above, below, text) => {
    expect(checkChild({ parent: above, child: below })).toContain(text);
  });
});

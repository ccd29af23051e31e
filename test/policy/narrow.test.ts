import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalPolicy, policyBytes } from '../../src/policy/canonical.ts';
import { decide } from '../../src/policy/decide.ts';
import { defaultCeiling, rootPolicy } from '../../src/policy/defaults.ts';
import { narrow, whyNotWithin, within } from '../../src/policy/narrow.ts';
import type { Policy, Verdict } from '../../src/policy/policy.ts';
import { anyAction, anyPolicy, anyWanted } from './arbitrary-policy.ts';

const RANK: Readonly<Record<Verdict, number>> = { deny: 0, ask: 1, allow: 2 };

const root = rootPolicy({ workspace: '/w', approvals: 'deny', models: ['large', 'small'] });

describe('narrow', () => {
  it('never lets a chain of children do what an ancestor may not', () => {
    fc.assert(
      fc.property(anyPolicy, fc.array(anyWanted, { minLength: 1, maxLength: 4 }), anyAction, (top, chain, action) => {
        const line = chain.reduce<Policy[]>((all, wanted) => [...all, narrow(all.at(-1) ?? top, wanted)], [top]);
        const verdicts = line.map((policy) => RANK[decide(policy, action).verdict]);
        expect(verdicts).toEqual([...verdicts].sort((a, b) => b - a));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is idempotent, commutative and associative', () => {
    fc.assert(
      fc.property(anyPolicy, anyPolicy, anyPolicy, (a, b, c) => {
        expect(narrow(a, a)).toEqual(a);
        expect(narrow(a, b)).toEqual(narrow(b, a));
        expect(narrow(narrow(a, b), c)).toEqual(narrow(a, narrow(b, c)));
      }),
      { numRuns: 500 },
    );
  });

  it('is monotone and gives something within both', () => {
    fc.assert(
      fc.property(anyPolicy, anyPolicy, anyPolicy, (a, b, c) => {
        expect(within(narrow(a, b), a)).toBe(true);
        expect(within(narrow(a, b), b)).toBe(true);
        expect(within(narrow(narrow(a, b), c), narrow(b, c))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('keeps of two roots the deeper one', () => {
    const parent = { ...root, roots: ['/w', '/data/in'] };
    expect(narrow(parent, { roots: ['/w/src', '/data', '/elsewhere'] }).roots).toEqual(['/data/in', '/w/src']);
    expect(narrow(parent, { roots: ['/w2'] }).roots).toEqual([]);
  });

  it('does not take a missing limit from outside for no limit', () => {
    const forged = { ...root, hops: JSON.parse('null') as number };
    expect(() => narrow(root, forged)).toThrow('policy field hops must be a finite number');
  });

  it('is frozen throughout', () => {
    const policy = narrow(root, { layers: [{ owner: 'user', deny: ['Bash'], ask: [], allow: [] }] });
    expect(Object.isFrozen(policy)).toBe(true);
    expect(Object.isFrozen(policy.layers[0]?.deny)).toBe(true);
  });
});

describe('whyNotWithin', () => {
  it('names every field that goes beyond the parent', () => {
    const wide = canonicalPolicy({ ...root, network: true, roots: ['/'], hops: 4 });
    expect(whyNotWithin(wide, root)).toBe(
      'roots: ["/"] where at most ["/w"] is allowed; network: true where at most false is allowed; ' +
        'hops: 4 where at most 2 is allowed',
    );
  });

  it('counts a dropped layer as going beyond', () => {
    const strict = narrow(root, { layers: [{ owner: 'user', deny: ['Bash'], ask: [], allow: [] }] });
    expect(whyNotWithin(root, strict)).toContain('layers: [] where at most');
    expect(whyNotWithin(strict, root)).toBeUndefined();
  });
});

describe('policyBytes', () => {
  it('are equal for policies that mean the same', () => {
    const layer = { owner: 'user', deny: ['Bash', 'Write'], ask: [], allow: [] };
    const a = { ...root, layers: [layer], tools: ['read', 'bash'], roots: ['/w/', '/w/src'] };
    const b = { ...root, layers: [{ ...layer, deny: ['Write', 'Bash', 'Bash'] }, layer], tools: ['bash', 'read'] };
    expect(policyBytes(a)).toBe(policyBytes(b));
  });
});

describe('defaultCeiling', () => {
  it('lets the default root policy pass unchanged but for nothing', () => {
    expect(narrow(defaultCeiling(), root)).toEqual(root);
  });

  it('does not let a run ask for full access, the network or more than five levels', () => {
    const greedy = rootPolicy({
      workspace: '/w',
      approvals: 'ask',
      models: ['large'],
      sandbox: 'full-access',
      network: true,
      hops: 99,
    });
    expect(narrow(defaultCeiling(), greedy)).toMatchObject({ sandbox: 'workspace-write', network: false, hops: 5 });
  });

  it("closes errand's own state to all file tools, whatever its path is made of", () => {
    const ceiling = defaultCeiling({ errandHome: '/w/[me]/.errand*' });
    const policy = narrow(ceiling, root);
    for (const tool of ['read', 'grep', 'glob', 'write', 'edit']) {
      const access = tool === 'write' || tool === 'edit' ? 'write' : 'read';
      const path = '/w/[me]/.errand*/journal/x';
      expect(decide(policy, { tool, access, path })).toMatchObject({ verdict: 'deny', owner: 'ceiling' });
    }
    expect(decide(policy, { tool: 'read', access: 'read', path: '/w/m/.errandx' }).verdict).toBe('allow');
  });
});

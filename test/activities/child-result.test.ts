import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { childResult } from '../../src/activities/child-result.ts';
import type { ActivityDeps } from '../../src/activities/deps.ts';
import type { AgentRef } from '../../src/protocol.ts';
import type { RecordedCall } from '../../src/store/records.ts';

const PARENT: AgentRef = {
  runId: 'run-1',
  agentId: 'run-1',
  transcript: '2026/11/30/rollout-2026-11-30T10-00-00-000Z-run-1',
  epoch: 0,
  branch: '',
};
const CALL: RecordedCall = {
  callId: 't1.0',
  name: 'task',
  kind: 'task',
  summary: 'task look',
  toolUseId: 'toolu_1',
  task: {
    agentId: 'abcdefabcdef',
    agentType: 'general-purpose',
    description: 'look around there',
    hops: 0,
    objects: { policy: '', agentType: '', systemPrompt: '', toolSchemas: '' },
    limits: { maxTurns: 30, timeoutMs: 1, outageMs: 1 },
    model: 'sim-1',
    spanId: '',
  },
};

describe('the result of a child that never opened', () => {
  let home: string;

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'errand-child-result-'));
  });

  afterAll(() => {
    rmSync(home, { recursive: true, force: true });
  });

  it('promise 5: a parent that was stopped before the start is told so, and can end', async () => {
    const { text, isError } = await childResult({ home } as ActivityDeps, PARENT, CALL, undefined);
    expect(isError).toBe(true);
    expect(text).toContain('was not started');
    expect(text).toContain('no transcript');
  });

  it('promise 6: one that the server closed before its first record is lost, and its parent goes on', async () => {
    const answer = { callId: 't1.0', child: { agentId: 'abcdefabcdef', status: 'lost' as const } };
    const { text, isError } = await childResult({ home } as ActivityDeps, PARENT, CALL, answer);
    expect(isError).toBe(true);
    expect(text).toContain('what it did is not known');
  });
});

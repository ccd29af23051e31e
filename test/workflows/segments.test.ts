import { describe, expect, it } from 'vitest';
import type { Call } from '../../src/protocol.ts';
import { indexOf, toSegments } from '../../src/workflows/segments.ts';
import { call } from '../helpers/scripted-steps.ts';

function shape(calls: readonly Call[]): string[] {
  return toSegments(calls).map((segment) => `${segment.kind}:${segment.calls.map(indexOf).join()}`);
}

describe('segments', () => {
  it('put neighbouring reads into one activity', () => {
    expect(shape([call('read', 0), call('grep', 1), call('glob', 2)])).toEqual(['read:0,1,2']);
  });

  it('keep the order of reads and effects', () => {
    const calls = [call('read', 0), call('edit', 1, 'effect'), call('bash', 2, 'effect'), call('read', 3)];
    expect(shape(calls)).toEqual(['read:0', 'effect:1', 'effect:2', 'read:3']);
  });

  it('run neighbouring tasks side by side', () => {
    expect(shape([call('task', 0, 'task'), call('task', 1, 'task'), call('read', 2)])).toEqual(['task:0,1', 'read:2']);
  });

  it('leave out what needs no dispatch without splitting its neighbours', () => {
    const wrong: Call = { ...call('read', 1), problem: true };
    expect(shape([call('read', 0), wrong, call('todo_write', 2, 'plan'), call('read', 3)])).toEqual(['read:0,3']);
  });
});

import { describe, expect, it } from 'vitest';
import { fingerprint, isGoingInCircles, repeatNote, streakOf } from '../../src/activities/repeat-guard.ts';
import type { SealedResult } from '../../src/store/records.ts';

function turns(texts: readonly string[]): SealedResult[][] {
  const sealed: SealedResult[][] = [];
  for (const [index, text] of texts.entries()) {
    const print = fingerprint('read', { file_path: 'a' }, text);
    const streak = streakOf(print, sealed.at(-1));
    sealed.push([{ callId: `t${index + 1}.0`, isError: false, fingerprint: print, streak }]);
  }
  return sealed;
}

describe('the repeat guard', () => {
  it('notes the third and stops at the sixth time in a row', () => {
    const sealed = turns(['x', 'x', 'x', 'x', 'x', 'x']);
    expect(sealed.map((results) => repeatNote(results) !== undefined)).toEqual([false, false, true, true, true, true]);
    expect(sealed.map(isGoingInCircles)).toEqual([false, false, false, false, false, true]);
  });

  it('starts again when the result differs', () => {
    expect(turns(['x', 'x', 'y', 'x']).map(([result]) => result?.streak)).toEqual([1, 2, 1, 1]);
  });

  it('tells inputs apart', () => {
    expect(fingerprint('read', { file_path: 'a' }, 'x')).not.toBe(fingerprint('read', { file_path: 'b' }, 'x'));
  });
});

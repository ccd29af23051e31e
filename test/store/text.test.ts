import fc from 'fast-check';
import { expect, test } from 'vitest';
import { headOf, mapStrings, tailOf, toSafeText, toWellFormed } from '../../src/store/text.ts';

const anyText = fc.string({ unit: 'grapheme-composite', maxLength: 40 });

test('head and tail fit, are whole code points, and lose nothing that would have fitted', () => {
  const check = (text: string, maxBytes: number): void => {
    const [head, tail] = [headOf(text, maxBytes), tailOf(text, maxBytes)];
    expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
    expect(toWellFormed(head + tail)).toBe(head + tail);
    for (const part of [head, tail]) {
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(maxBytes);
      expect(part === text || Buffer.byteLength(part) > maxBytes - 4).toBe(true);
    }
  };
  fc.assert(fc.property(anyText, fc.nat(60), check));
});

test('safe text has no lone surrogate and no NUL, and keeps all else', () => {
  expect(toSafeText('\ud83d\ude00 \ude00 \ud83d \0 é')).toBe('😀 \uFFFD \uFFFD \u2400 é');
});

test('what needs no change stays the same value', () => {
  const value = { a: ['x', 1, null], b: { c: 'y' } };
  expect(mapStrings(value, toSafeText)).toBe(value);
  expect(mapStrings({ a: ['\0'] }, toSafeText)).toEqual({ a: ['\u2400'] });
});

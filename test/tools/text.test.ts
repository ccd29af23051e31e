import fc from 'fast-check';
import { expect, test } from 'vitest';
import { headOf, tailOf, toWellFormed } from '../../src/store/text.ts';
import {
  cutMiddle,
  MAX_RESULT_BYTES,
  resultText,
  summaryLine,
  summaryOfPath,
  visibleText,
} from '../../src/tools/text.ts';

const anyText = fc.string({ unit: 'binary', maxLength: 40 });

test('head and tail are well-formed parts of the text and as long as they may be', () => {
  fc.assert(
    fc.property(anyText, fc.nat(60), (text, maxBytes) => {
      const well = toWellFormed(text);
      const [head, tail] = [headOf(well, maxBytes), tailOf(well, maxBytes)];
      expect(well.startsWith(head) && well.endsWith(tail)).toBe(true);
      for (const part of [head, tail]) {
        const bytes = Buffer.byteLength(part);
        expect(bytes).toBeLessThanOrEqual(maxBytes);
        expect(toWellFormed(part)).toBe(part);
        if (part !== well) expect(bytes).toBeGreaterThan(maxBytes - 4);
      }
    }),
  );
});

test('the middle of a long text is replaced by its size', () => {
  expect(cutMiddle('aaaaabbbbbccccc', { headBytes: 5, tailBytes: 5 })).toBe('aaaaa\n[5 bytes left out]\nccccc');
  expect(cutMiddle('short', { headBytes: 5, tailBytes: 5 })).toBe('short');
});

test('lone surrogates, NUL and control characters become visible', () => {
  expect(visibleText('a\ud83d b\0c\x1b[0m\td\r\ne\rf\x7f\x85')).toBe('a\ufffd b\\x00c\\x1b[0m\td\r\ne\\rf\\x7f\\x85');
});

test('any result fits, is well-formed and has no NUL', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 9000 }), (text, times) => {
      const result = resultText(text.repeat(times));
      expect(Buffer.byteLength(result)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
      expect(toWellFormed(result)).toBe(result);
      expect(result).not.toContain('\0');
    }),
    { numRuns: 30 },
  );
});

test('a cut result says how long it was', () => {
  expect(resultText('é'.repeat(40_000))).toMatch(/é\n\[cut: the whole text has 80000 bytes\]$/);
});

test('a summary is one line of at most 100 bytes; of a path the end is kept', () => {
  expect(summaryLine(' bash  echo\n\tx ')).toBe('bash echo x');
  expect(summaryLine('😀'.repeat(50))).toBe(`${'😀'.repeat(24)}…`);
  const path = `${'long/'.repeat(40)}name.ts`;
  expect(summaryOfPath('edit', path)).toMatch(/^edit ….*\/name\.ts$/);
  expect(Buffer.byteLength(summaryOfPath('edit', path))).toBe(100);
});

import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { cleanLongOutput, cleanOutput, cutMiddle, lastLine } from '../../src/jobs/output-text.ts';
import { jobResult } from '../../src/jobs/job-result.ts';
import { openJobBench } from './job-bench.ts';

it.each([
  ['colours are dropped', '\x1b[31mred\x1b[0m', 'red'],
  ['other escapes and NUL are shown', '\x00\x1b[2J', '\\x00\\x1b[2J'],
  ['progress lines keep their last state', '1%\r50%\r100%\ndone\r\n', '100%\ndone\n'],
  ['tabs and newlines stay', 'a\tb\n', 'a\tb\n'],
])('%s', (_title, raw, clean) => {
  expect(cleanOutput(Buffer.from(raw))).toBe(clean);
});

it('invalid bytes become replacement characters', () => {
  expect(cleanOutput(Buffer.from([0x61, 0xff, 0xf0, 0x9f, 0x98]))).toBe('a\ufffd\ufffd');
});

it('a cut never splits a character', () => {
  const ends = cutMiddle(`${'😀'.repeat(50)}`, 31);
  expect(ends && Buffer.from(ends.head + ends.tail).toString()).toBe(ends && ends.head + ends.tail);
});

it('the last line that says something is the progress', () => {
  expect(lastLine(Buffer.from('one\n10%\r20%\n\n'))).toBe('20%');
});

it('long output keeps both ends, says what was cut, and is stored whole', async () => {
  const bench = await openJobBench('full-access');
  const outcome = await bench.start(`printf 'first 😀\\n'; for i in {1..20000}; do echo "line $i 😀"; done; echo last`);
  let stored = '';
  const spill = async (text: string | Buffer) => {
    stored = text.toString();
    return '/results/x';
  };
  const { text, facts } = await jobResult(outcome, { spill });
  expect(text.length).toBeLessThan(31_000);
  expect(text).toMatch(
    /^first 😀\nline 1 😀\n.*characters cut here; the whole output is in \/results\/x.*\nlast\nexit code: 0$/s,
  );
  expect(text).not.toContain('\ufffd');
  expect(stored.split('\n')).toHaveLength(20_002);
  expect(facts).toEqual({ exitCode: 0, spilledTo: '/results/x' });
});

it('what was not kept is counted', async () => {
  const bench = await openJobBench('full-access');
  const caps = { headBytes: 1000, tailBytes: 1000, flowBytes: 1 << 30 };
  const text = await bench.text('seq 1 100000', { caps });
  expect(text).toMatch(/^1\n2\n.*\[586895 bytes of 588895 were not kept\].*\n99999\n100000\nexit code: 0$/s);
});

it('long output is cleaned like short output, in steps between which the process can do something else', async () => {
  const bytes = Buffer.concat([randomBytes(300_000), Buffer.alloc(1 << 20), Buffer.from('\n1%\r2%\n\x1b[31mend😀')]);
  let turns = 0;
  let isDone = false;
  const cleaning = cleanLongOutput(bytes).finally(() => (isDone = true));
  while (!isDone) {
    await nextTurn();
    turns += 1;
  }
  expect(turns).toBeGreaterThan(10);
  expect((await cleaning) === cleanOutput(bytes)).toBe(true);
});

it('a progress bar of a hundred thousand updates is its last state', async () => {
  const updates = Array.from({ length: 100_000 }, (_, count) => `\r${count} of 100000`).join('');
  expect(await cleanLongOutput(Buffer.from(updates))).toBe('99999 of 100000');
});

it('of many long outputs at once one is in memory at a time', async () => {
  const bench = await openJobBench('full-access');
  const outcome = await bench.start('seq 1 100000');
  let open = 0;
  let most = 0;
  const spill = async () => {
    most = Math.max(most, ++open);
    await nextTurn();
    open -= 1;
    return '/spilled';
  };
  await Promise.all([1, 2, 3].map(() => jobResult(outcome, { spill })));
  expect(most).toBe(1);
  const failing = jobResult(outcome, { spill: () => Promise.reject(new Error('disk full')) });
  const next = jobResult(outcome, { spill });
  await expect(failing).rejects.toThrow('disk full');
  expect((await next).text).toMatch(/exit code: 0$/);
});

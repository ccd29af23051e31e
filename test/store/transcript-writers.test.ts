import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { readTranscript } from '../../src/store/read.ts';
import { openTranscript } from '../../src/store/transcript.ts';
import { bundleScript, freshFolder, run, user } from './fixtures.ts';

interface Outcome {
  readonly won: readonly string[];
  readonly seen: Readonly<Record<string, unknown>>;
  readonly skipped: { readonly lines: number };
}

it('two processes that append the same ids agree on every record', { timeout: 60_000 }, async () => {
  const folder = freshFolder();
  const script = await bundleScript('race', folder);
  const file = join(folder, 't.jsonl');
  const [one, other] = await raceFor(script, file, 200);
  const { records, skipped } = await readTranscript(file);
  expect(new Set(records.map((record) => record.id)).size).toBe(600);
  expect(records).toHaveLength(600);
  expect(skipped.lines).toBe(0);
  // Each record was won by exactly one, and both were told whose it is.
  expect([...one.won, ...other.won].sort()).toEqual(records.map((record) => record.id).sort());
  for (const record of records) {
    const by = record.type === 'event' ? record.data['by'] : undefined;
    for (const { seen } of [one, other]) if (record.id in seen) expect(seen[record.id]).toBe(by);
  }
});

it('a writer killed at any moment loses nothing it was told is stored', { timeout: 60_000 }, async () => {
  const folder = freshFolder();
  const script = await bundleScript('append-forever', folder);
  const file = join(folder, 't.jsonl');
  const acknowledged: string[] = [];
  for (let life = 0; life < 6; life += 1) {
    const child = spawn(process.execPath, [script, file, `life-${life}`, '2000000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'close');
    let left = 3 + life;
    for await (const line of createInterface({ input: streamOf(child) })) {
      acknowledged.push(line);
      left -= 1;
      if (left === 0) child.kill('SIGKILL');
    }
    await exited;
  }
  const transcript = await openTranscript(file);
  await transcript.append(user({}));
  const { records, tornBytes } = await readTranscript(file);
  const stored = new Set(records.map((record) => record.id));
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  expect(stored.has(user({}).id)).toBe(true);
  expect(tornBytes).toBe(0);
});

it('a write that the kernel takes only in part fails, and hurts no record', { timeout: 60_000 }, async () => {
  const folder = freshFolder();
  const script = await bundleScript('append-forever', folder);
  const file = join(folder, 't.jsonl');
  const limited = run('bash', [
    '-c',
    `ulimit -f 10 && exec "$0" "$@"`,
    process.execPath,
    script,
    file,
    'small',
    '3000',
  ]);
  await expect(limited).rejects.toThrow(/EFBIG/);
  const before = await readTranscript(file);
  expect(before.records).toHaveLength(3);
  expect(before.tornBytes + before.skipped.bytes).toBeGreaterThan(0);
  const transcript = await openTranscript(file);
  expect((await transcript.append(user({}))).isNew).toBe(true);
  expect((await readTranscript(file)).records).toHaveLength(4);
  expect(readFileSync(file, 'utf8').endsWith('\n')).toBe(true);
});

async function raceFor(script: string, file: string, count: number): Promise<[Outcome, Outcome]> {
  const racers = ['one', 'other'].map((name) => {
    const child = spawn(process.execPath, [script, file, name, String(count)], { stdio: ['pipe', 'pipe', 'inherit'] });
    return { child, lines: createInterface({ input: streamOf(child) })[Symbol.asyncIterator]() };
  });
  for (const { lines } of racers) expect((await lines.next()).value).toBe('ready');
  for (const { child } of racers) child.stdin?.write('go\n');
  const [one, other] = await Promise.all(
    racers.map(async ({ lines }) => JSON.parse(String((await lines.next()).value)) as Outcome),
  );
  if (one === undefined || other === undefined) throw new Error('a racer said nothing');
  return [one, other];
}

function streamOf(child: ChildProcess) {
  if (child.stdout === null) throw new Error('the child has no standard output');
  return child.stdout;
}

import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { toScriptPrompt } from '../src/simulator/index.ts';
import { listAgents } from '../src/store/listing.ts';
import { createHarness } from '../test/helpers/harness.ts';
import type { Harness, Run } from '../test/helpers/harness.ts';
import { withOwnServer } from '../test/helpers/own-server.ts';

/*
 * What a turn costs a worker late in a long run, and what the worker's memory and the histories do meanwhile.
 *
 *   npx vite-node bench/long-run.ts --turns 1000 [--child] [--history-events 400] [--result-bytes 500]
 *
 * `--child`: the turns are those of a sub-agent, of a type that may take so many (see worker-probe.mjs).
 */

const PRINT_EVERY_TURNS = 50;
const LOOK_EVERY_MS = 50;

const { values } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== '--'),
  options: {
    turns: { type: 'string', default: '1000' },
    child: { type: 'boolean', default: false },
    'history-events': { type: 'string' },
    'result-bytes': { type: 'string', default: '500' },
  },
});
const turns = Number(values.turns);
if (!Number.isInteger(turns) || turns < 1) throw new Error(`--turns is ${values.turns}: expected 1 or more, like 1000`);
/** Of the root; a child is never allowed more. */
const maxTurns = turns + 10;

const heapFolder = mkdtempSync(join(tmpdir(), 'errand-bench-heap-'));
await withOwnServer(async (address) => {
  const harness = await createHarness({
    address,
    workers: 1,
    simulator: { keepMessages: false },
    env: {
      NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'worker-probe.mjs')).href}`,
      BENCH_HEAP_FOLDER: heapFolder,
      ...(values.child && { BENCH_CHILD_TURNS: String(maxTurns) }),
    },
  });
  try {
    await measure(harness);
  } finally {
    await harness.close();
    rmSync(heapFolder, { recursive: true, force: true });
  }
});

interface Reading {
  readonly turn: number;
  readonly cpuMs: number;
  readonly atMs: number;
}

async function measure(harness: Harness): Promise<void> {
  const line = `word ${'x'.repeat(Number(values['result-bytes']))}\n`;
  await harness.write('a.txt', Array.from({ length: turns }, (_, i) => `${i} ${line}`).join(''));
  const worker = harness.workers[0]?.process.pid ?? 0;
  const run = await harness.run(prompt(), {
    maxTurns,
    ...(values['history-events'] && { historyEvents: Number(values['history-events']) }),
  });
  let isOver = false;
  const over = run.result().finally(() => (isOver = true));
  console.log('turn    ms/turn  worker CPU ms/turn  RSS MB  anonymous MB  heap MB: main  workflows');
  let before = read(harness, worker);
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    const now = read(harness, worker);
    if (now.turn < before.turn + PRINT_EVERY_TURNS) continue;
    printReading(worker, before, now);
    before = now;
  }
  await over;
  await tellAgents(harness, run);
  await tellHistories(harness, run);
}

function read(harness: Harness, worker: number): Reading {
  // The parent of `--child` has asked once before.
  const turn = harness.simulator.ledger().length - (values.child ? 1 : 0);
  return { turn, cpuMs: cpuMs(worker), atMs: Date.now() };
}

function printReading(worker: number, before: Reading, now: Reading): void {
  const per = (what: 'cpuMs' | 'atMs') => ((now[what] - before[what]) / (now.turn - before.turn)).toFixed(1);
  const { main, workflows } = heapsMb();
  const cells: readonly (readonly [string | number, number])[] = [
    [now.turn, 8],
    [per('atMs'), 9],
    [per('cpuMs'), 20],
    [memoryMb(worker, 'Rss'), 8],
    [memoryMb(worker, 'Anonymous'), 14],
    [main, 15],
    [workflows, 0],
  ];
  console.log(cells.map(([value, width]) => String(value).padEnd(width)).join(''));
}

function prompt(): string {
  const steps = [
    { calls: [{ name: 'grep', input: { pattern: '^{{turn}} word', output_mode: 'content' } }], repeat: turns },
    { text: 'done' },
  ];
  if (!values.child) return toScriptPrompt(steps, 'long run');
  const task = { description: 'works for a long time', prompt: toScriptPrompt(steps, 'long child') };
  return toScriptPrompt([{ calls: [{ name: 'task', input: task }] }, { text: 'done' }], 'above it');
}

async function tellAgents(harness: Harness, run: Run): Promise<void> {
  const { agents } = await listAgents(harness.home, run.stem);
  for (const { depth, status, turns: taken } of agents) {
    console.log(`${depth === 0 ? 'root' : 'child'}: ${status} after ${taken} turns`);
  }
}

async function tellHistories(harness: Harness, run: Run): Promise<void> {
  const histories = await harness.histories();
  for (const { name, history } of histories) {
    const { events } = history as { events: unknown[] };
    console.log(`${name}: ${events.length} events, ${JSON.stringify(history).length} bytes of JSON`);
  }
  console.log(`${histories.length} workflow runs of ${run.runId}`);
}

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  // Fields 14 and 15 of the line: user and system time in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** `Anonymous` leaves out what is mapped from files: program text, libraries, the database of time zones. */
function memoryMb(pid: number, what: 'Rss' | 'Anonymous'): string {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kilobytes = new RegExp(`^${what}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
  return (Number(kilobytes) / 1024).toFixed(0);
}

/** What the worker's threads wrote last: the main one has the activities, the others the workflows. */
function heapsMb(): { readonly main: string; readonly workflows: string } {
  const heaps = readdirSync(heapFolder).filter((name) => /^\d+$/.test(name));
  const sum = (names: readonly string[]): string =>
    (names.reduce((total, name) => total + Number(readFileSync(join(heapFolder, name), 'utf8')), 0) / 2 ** 20).toFixed(
      0,
    );
  return { main: sum(heaps.filter((name) => name === '0')), workflows: sum(heaps.filter((name) => name !== '0')) };
}

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { toScriptPrompt } from '../src/simulator/index.ts';
import { createHarness } from '../test/helpers/harness.ts';
import type { Harness, Run } from '../test/helpers/harness.ts';
import { withOwnServer } from '../test/helpers/own-server.ts';

/*
 * What a turn costs a worker late in a long run, and what the worker's memory and the histories do meanwhile.
 *
 *   npx vite-node bench/long-run.ts --turns 1000 [--child] [--history-events 400] [--result-bytes 500]
 */

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

await withOwnServer(async (address) => {
  const harness = await createHarness({ address, workers: 1, simulator: { keepMessages: false } });
  try {
    await measure(harness);
  } finally {
    await harness.close();
  }
});

async function measure(harness: Harness): Promise<void> {
  const line = `word ${'x'.repeat(Number(values['result-bytes']))}\n`;
  await harness.write('a.txt', Array.from({ length: turns }, (_, i) => `${i} ${line}`).join(''));
  const worker = harness.workers[0]?.process.pid ?? 0;
  const run = await harness.run(prompt(), {
    maxTurns: turns + 10,
    ...(values['history-events'] && { historyEvents: Number(values['history-events']) }),
  });
  const ended = run.result();
  const every = Math.max(1, Math.round(turns / 10));
  let before = { turn: 0, cpuMs: cpuMs(worker), atMs: Date.now() };
  let isOver = false;
  const over = ended.finally(() => (isOver = true));
  console.log('turn    ms/turn  worker CPU ms/turn  worker RSS MB');
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const turn = harness.simulator.ledger().length;
    if (turn < before.turn + every) continue;
    const now = { turn, cpuMs: cpuMs(worker), atMs: Date.now() };
    const per = (what: 'cpuMs' | 'atMs') => ((now[what] - before[what]) / (now.turn - before.turn)).toFixed(1);
    console.log(
      `${String(turn).padEnd(7)} ${per('atMs').padEnd(8)} ${per('cpuMs').padEnd(19)} ${rssMb(worker).toFixed(0)}`,
    );
    before = now;
  }
  const { status, turns: taken } = await over;
  console.log(`${status} after ${taken} turns`);
  await tellHistories(harness, run);
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

function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

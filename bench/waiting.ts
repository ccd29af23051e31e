import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { toScriptPrompt } from '../src/simulator/index.ts';
import { BenchHome, until, type BenchWorker } from './bench-home.ts';

/*
 * Memory of one worker with many agents that wait: each chain is a root that waits for a child, which waits for a
 * grandchild, which waits for its model. npx vite-node bench/waiting.ts -- --agents 66,201,285
 */

const { values } = parseArgs({
  options: { agents: { type: 'string', default: '66,201,285' } },
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
});

const CHAIN = 3;
const task = (prompt: string) => ({ name: 'task', input: { description: 'waits for somebody else', prompt } });
const silent = toScriptPrompt([{ text: 'x', fault: { silence: 'message_start' } }], 'silent');
const chain = toScriptPrompt([{ calls: [task(toScriptPrompt([{ calls: [task(silent)] }], 'middle'))] }], 'top');

const bench = await BenchHome.open();
try {
  const worker = await bench.startWorker();
  await until('the worker to have settled', async () => (process.uptime() > 5 ? true : undefined));
  const rows = [['0', toMegabytes(rssBytes(worker))]];
  let chains = 0;
  for (const wanted of values.agents.split(',').map(Number)) {
    for (; chains * CHAIN < wanted; chains++) await bench.run(chain);
    await until(
      `${wanted} agents to wait`,
      async () => ((await openAgents()) >= chains * CHAIN ? true : undefined),
      300_000,
    );
    rows.push([String(chains * CHAIN), toMegabytes(rssBytes(worker))]);
    console.error(rows.at(-1)?.join(' · '));
  }
  console.log('| agents that wait | resident MB of the worker |\n| --- | --- |');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
} finally {
  await bench.close();
}

async function openAgents(): Promise<number> {
  const { count } = await bench.client.workflow.count("WorkflowType = 'agent' AND ExecutionStatus = 'Running'");
  return count;
}

function rssBytes({ process: { pid } }: BenchWorker): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

function toMegabytes(bytes: number): string {
  return String(Math.round(bytes / 1024 ** 2));
}

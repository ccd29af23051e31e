import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { activityInfo } from '@temporalio/activity';
import { NativeConnection, Worker, bundleWorkflowCode } from '@temporalio/worker';

/**
 * Worker of the floor: one streamed call to the simulator with one synced append, and one activity that does nothing.
 * It sends the same growing conversation as a real agent, kept in memory, since no agent can do with less.
 */
const { FLOOR_ADDRESS, FLOOR_QUEUE, FLOOR_FOLDER, FLOOR_MODEL_URL, FLOOR_RESULT } = process.env;
const client = new Anthropic({ apiKey: 'bench', baseURL: FLOOR_MODEL_URL, maxRetries: 0, openTelemetry: false });
const conversations = new Map();
const tools = [
  {
    name: 'read',
    description: 'Reads a file.',
    input_schema: { type: 'object', properties: { file_path: { type: 'string' } } },
  },
];

async function ask({ prompt }) {
  const { workflowExecution } = activityInfo();
  const id = workflowExecution.workflowId;
  const messages = conversations.get(id) ?? [{ role: 'user', content: prompt }];
  const reply = await client.messages
    .stream({ model: 'sim-1', max_tokens: 8192, system: 'bench', tools, messages })
    .finalMessage();
  await append(join(FLOOR_FOLDER, `${id}.jsonl`), JSON.stringify(reply));
  messages.push({ role: 'assistant', content: reply.content });
  const calls = reply.content.filter((block) => block.type === 'tool_use');
  if (calls.length > 0)
    messages.push({
      role: 'user',
      content: calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: FLOOR_RESULT })),
    });
  conversations.set(id, messages);
  return { stop: reply.stop_reason, calls: calls.length };
}

async function append(file, line) {
  const handle = await open(file, 'a');
  try {
    await handle.write(`${line}\n`);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

const { code } = await bundleWorkflowCode({
  workflowsPath: fileURLToPath(new URL('./workflows.mjs', import.meta.url)),
});
const connection = await NativeConnection.connect({ address: FLOOR_ADDRESS });
const worker = await Worker.create({
  connection,
  namespace: 'default',
  taskQueue: FLOOR_QUEUE,
  workflowBundle: { code },
  activities: { ask, noop: async () => undefined },
  maxCachedWorkflows: 200,
});
const running = worker.run();
process.send?.({ type: 'ready' });
await running;

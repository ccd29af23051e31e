import { STUBBED_EVENT, contextSize, planStubs } from '../model/context.ts';
import { recordId } from '../store/records.ts';
import { chainOf } from './agent-files.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';

/**
 * Makes room in the context window once it is four fifths full: older tool results become stubs. The decision is
 * recorded, so that it is never made anew.
 */
export async function makeRoom(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  turn: number,
): Promise<void> {
  const window = await deps.model.window(files.meta.model);
  await stub(files, turn, 'stubbed', { ...contextOf(files, rendered), window });
}

/**
 * For a server whose window is smaller than it was thought to be: stubs what it takes to bring the conversation to three
 * fifths of its present size. Answers whether anything could be stubbed.
 */
export async function makeMoreRoom(files: AgentFiles, rendered: RenderedAgent, turn: number): Promise<boolean> {
  const context = contextOf(files, rendered);
  const window = contextSize(context.records, context);
  return stub(files, turn, 'stubbed.2', { ...context, window, share: 0, most: 0.6 });
}

function contextOf(files: AgentFiles, { systemPrompt, tools }: RenderedAgent) {
  const fixedBytes = systemPrompt.length + JSON.stringify(tools).length;
  return { records: chainOf(files), usages: files.transcript.records, fixedBytes };
}

async function stub(
  files: AgentFiles,
  turn: number,
  slot: string,
  plan: Parameters<typeof planStubs>[0],
): Promise<boolean> {
  const id = recordId({ ...files.ref, turn }, slot);
  if (files.transcript.get(id)) return false;
  const toolUseIds = planStubs(plan);
  if (toolUseIds.length === 0) return false;
  await files.transcript.append({ id, type: 'event', turn, name: STUBBED_EVENT, data: { toolUseIds } });
  return true;
}

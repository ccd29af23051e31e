import { MAX_CALLS_PER_TURN, callId } from '../protocol.ts';
import type { Todo } from '../protocol.ts';
import { rawInputOf } from '../store/blocks.ts';
import type { ContentBlock, RecordedCall } from '../store/records.ts';
import { headOf } from '../store/text.ts';
import { toolByName } from '../tools/index.ts';
import { parseToolInput } from '../tools/tool-input.ts';
import type { TaskInput } from '../tools/task.ts';
import { callKind } from '../tools/tool.ts';
import type { Tool } from '../tools/tool.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { storeChild } from './store-child.ts';

/** What the API accepts as a tool's name; anything else is not repeated to people either. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const SUMMARY_BYTES = 100;

/** A reply that is about to be recorded. */
export interface ReplyDraft {
  readonly id: string;
  readonly turn: number;
  readonly content: readonly ContentBlock[];
  /** Cut at the output limit: its calls may be incomplete and are never run. */
  readonly wasCut: boolean;
}

/** Validates every call of a reply. A call that cannot be run carries the answer that the model will get. */
export async function toRecordedCalls(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  reply: ReplyDraft,
): Promise<readonly RecordedCall[]> {
  const blocks = reply.content.filter((block) => block.type === 'tool_use');
  return Promise.all(blocks.map((block, index) => toRecordedCall(deps, files, rendered, reply, block, index)));
}

async function toRecordedCall(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  reply: ReplyDraft,
  block: ContentBlock,
  index: number,
): Promise<RecordedCall> {
  const name = typeof block.name === 'string' && TOOL_NAME.test(block.name) ? block.name : 'unknown';
  const base = { callId: callId(reply.turn, index), name, toolUseId: String(block.id) };
  const refuse = (problem: string): RecordedCall => ({ ...base, kind: 'plan', summary: `${name}: refused`, problem });
  if (reply.wasCut) return refuse(CUT);
  if (index >= MAX_CALLS_PER_TURN)
    return refuse(`Not run: a turn may have ${MAX_CALLS_PER_TURN} calls. Give it again.`);
  const offered = rendered.tools.map((schema) => schema.name);
  const tool = offered.includes(name) ? toolByName(name) : undefined;
  if (!tool) return refuse(`There is no tool "${name}" here. Tools: ${offered.join(', ')}.`);
  if (rawInputOf(block.input) !== undefined)
    return refuse(`The input of ${name} is not valid JSON. Give the call again.`);
  const parsed = parseToolInput(tool, block.input);
  if ('problem' in parsed) return refuse(parsed.problem);
  const call = { ...base, kind: callKind(tool), summary: headOf(tool.summarize(parsed.input), SUMMARY_BYTES) };
  if (call.kind !== 'task') return { ...call, ...extras(tool, parsed.input) };
  const child = await storeChild(deps, files, rendered.type, { reply, index, input: parsed.input as TaskInput });
  return 'problem' in child ? refuse(child.problem) : { ...call, task: child };
}

/** What the workflow itself needs of an input. */
function extras(tool: Tool, input: unknown): { todos?: readonly Todo[]; timeoutMs?: number } {
  if (tool.effect === 'job') return { timeoutMs: tool.timeoutMs(input) };
  if (tool.name === 'todo_write') return { todos: (input as { todos: readonly Todo[] }).todos };
  return {};
}

const CUT =
  'Not run: your reply was cut at the output limit, so this call may be incomplete. Give it again, in smaller pieces.';

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
  const uses = reply.content.filter((block) => block.type === 'tool_use');
  const offered = rendered.tools.map((schema) => schema.name);
  const toCall = async (use: ContentBlock, index: number): Promise<RecordedCall> => {
    const name = typeof use.name === 'string' && TOOL_NAME.test(use.name) ? use.name : 'unknown';
    const base = { callId: callId(reply.turn, index), name, toolUseId: String(use.id) };
    const refuse = (problem: string): RecordedCall => ({ ...base, kind: 'plan', summary: `${name}: refused`, problem });
    const checked = reply.wasCut ? { problem: CUT } : checkCall(name, use.input, index, offered);
    if ('problem' in checked) return refuse(checked.problem);
    const call = { ...base, kind: callKind(checked.tool), summary: summaryOf(checked) };
    if (call.kind !== 'task') return { ...call, ...extras(checked) };
    const ordinal = uses.slice(0, index).filter((other) => other.name === name).length;
    const request = { reply, index, ordinal, input: checked.input as TaskInput };
    const child = await storeChild(deps, files, rendered.type, request);
    return 'problem' in child ? refuse(child.problem) : { ...call, task: child };
  };
  return Promise.all(uses.map(toCall));
}

/** A call that can be run. */
interface CheckedCall {
  readonly tool: Tool;
  readonly input: unknown;
}

function checkCall(
  name: string,
  input: unknown,
  index: number,
  offered: readonly string[],
): CheckedCall | { readonly problem: string } {
  if (index >= MAX_CALLS_PER_TURN)
    return { problem: `Not run: a turn may have ${MAX_CALLS_PER_TURN} calls. Give it again.` };
  const tool = offered.includes(name) ? toolByName(name) : undefined;
  if (!tool) return { problem: `There is no tool "${name}" here. Tools: ${offered.join(', ')}.` };
  if (rawInputOf(input) !== undefined)
    return { problem: `The input of ${name} is not valid JSON. Give the call again.` };
  const parsed = parseToolInput(tool, input);
  return 'problem' in parsed ? parsed : { tool, input: parsed.input };
}

function summaryOf({ tool, input }: CheckedCall): string {
  return headOf(tool.summarize(input), SUMMARY_BYTES);
}

/** What the workflow itself needs of an input. */
function extras({ tool, input }: CheckedCall): { todos?: readonly Todo[]; timeoutMs?: number } {
  if (tool.effect === 'job') return { timeoutMs: tool.timeoutMs(input) };
  if (tool.name === 'todo_write') return { todos: (input as { todos: readonly Todo[] }).todos };
  return {};
}

const CUT =
  'Not run: your reply was cut at the output limit, so this call may be incomplete. Give it again, in smaller pieces.';

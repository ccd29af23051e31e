import { crashPoint } from '../crash-points.ts';
import type { Answer, LastTurnReason, SteeringMessage } from '../protocol.ts';
import { forkOf } from '../store/fork.ts';
import type {
  AssistantMessageRecord,
  ContentBlock,
  RecordedCall,
  SealedResult,
  UserMessageRecord,
} from '../store/records.ts';
import { recordId } from '../store/records.ts';
import type { ToolResult } from '../tools/tool.ts';
import type { AgentFiles } from './agent-files.ts';
import { refOf, replyOf, userMessageOf } from './agent-files.ts';
import { childResult } from './child-result.ts';
import type { ActivityDeps } from './deps.ts';
import { sealedResult } from './earlier-result.ts';
import { keptResult } from './kept-result.ts';
import { unreadableOutcome } from './unreadable.ts';
import { unsaidSteering } from './unsaid-steering.ts';
import { fingerprint, isGoingInCircles, repeatNote, streakOf } from './repeat-guard.ts';

/** What is sealed into the user message that opens a turn. */
export interface SealInput {
  readonly turn: number;
  readonly answers?: readonly Answer[];
  readonly steering?: readonly SteeringMessage[];
  readonly last?: LastTurnReason;
}

/**
 * Appends the results of the turn before, in the model's order, with steering and notes as one user message. Append-once:
 * what is there already stands. Answers nothing when there is nothing to say (a paused reply is simply sent back).
 */
export async function sealTurn(
  deps: ActivityDeps,
  files: AgentFiles,
  input: SealInput,
): Promise<UserMessageRecord | undefined> {
  const there = userMessageOf(files, input.turn);
  const steering = unsaidSteering(files, input.steering);
  if (there && input.turn === 1) await addToPrompt(files, steering);
  if (there) return there;
  const results = await collectResults(deps, files, input);
  const sealed = results.map(({ call, result, toolInput }) => toSealed(files, input.turn, call, toolInput, result));
  const last = input.last ?? (isGoingInCircles(sealed) ? 'repeated_call' : undefined);
  const content = [...results.map(toBlock), ...notes(files, { ...input, steering, last }, sealed)];
  if (content.length === 0) return undefined;
  crashPoint('seal.before');
  const { record } = await files.transcript.append({
    id: recordId({ ...files.ref, turn: input.turn }, 'user'),
    type: 'message',
    role: 'user',
    turn: input.turn,
    content,
    ...(sealed.length > 0 && { results: sealed }),
    ...(steering.length > 0 && { steering: steering.map(({ id }) => id) }),
    ...(last && { last }),
  });
  crashPoint('seal.after');
  return record as UserMessageRecord;
}

/** The prompt has its record already; what there is to say before the first reply gets one of its own. */
async function addToPrompt(files: AgentFiles, steering: readonly SteeringMessage[]): Promise<void> {
  const content = notes(files, { turn: 1, steering }, []);
  if (content.length === 0) return;
  await files.transcript.append({
    id: recordId({ ...files.ref, turn: 1 }, 'steer'),
    type: 'message',
    role: 'user',
    turn: 1,
    content,
    ...(steering.length > 0 && { steering: steering.map(({ id }) => id) }),
  });
}

interface CollectedResult {
  readonly call: RecordedCall;
  readonly toolInput: unknown;
  readonly result: ToolResult;
}

async function collectResults(
  deps: ActivityDeps,
  files: AgentFiles,
  input: SealInput,
): Promise<readonly CollectedResult[]> {
  const reply = replyOf(files, input.turn - 1);
  if (!reply) return [];
  const answers = new Map(input.answers?.map((answer) => [answer.callId, answer]));
  const inputs = new Map(reply.content.map((block) => [block.id, block.input]));
  return Promise.all(
    reply.calls.map(async (call) => ({
      call,
      toolInput: inputs.get(call.toolUseId),
      result: await resultOf(deps, files, reply, call, answers.get(call.callId)),
    })),
  );
}

/** Every call gets exactly one result, whatever became of it. */
async function resultOf(
  deps: ActivityDeps,
  files: AgentFiles,
  reply: AssistantMessageRecord,
  call: RecordedCall,
  answer: Answer | undefined,
): Promise<ToolResult> {
  if (call.problem !== undefined) return { text: call.problem, isError: true };
  if (call.kind === 'plan') return { text: 'The todo list is updated.', isError: false };
  if (call.kind === 'task') return childResult(deps, files.ref, call, answer);
  const known =
    files.ref.branch === '' ? keptResult(deps, refOf(files.ref, reply), call) : branchResult(deps, files, reply, call);
  const result = await known;
  if (result) return result;
  return { text: answer?.error ?? 'interrupted; effects unknown', isError: true };
}

/** After a reset: the other branch may have sealed it. What neither it nor a damaged file can tell is unknown. */
async function branchResult(
  deps: ActivityDeps,
  files: AgentFiles,
  reply: AssistantMessageRecord,
  call: RecordedCall,
): Promise<ToolResult | undefined> {
  const elsewhere = sealedResult(files.transcript.records, call);
  try {
    return (await keptResult(deps, refOf(files.ref, reply), call)) ?? elsewhere;
  } catch (error) {
    const text = unreadableOutcome(error);
    return elsewhere ?? { text, isError: true };
  }
}

function toBlock({ call, result }: CollectedResult): ContentBlock {
  return {
    type: 'tool_result',
    tool_use_id: call.toolUseId,
    content: result.text,
    ...(result.isError && { is_error: true }),
  };
}

function toSealed(
  files: AgentFiles,
  turn: number,
  call: RecordedCall,
  toolInput: unknown,
  result: ToolResult,
): SealedResult {
  const print = fingerprint(call.name, toolInput, result.text);
  const streak = streakOf(print, userMessageOf(files, turn - 1)?.results);
  return {
    callId: call.callId,
    isError: result.isError,
    ...(result.facts && { facts: result.facts }),
    fingerprint: print,
    streak,
  };
}

function notes(files: AgentFiles, input: SealInput, sealed: readonly SealedResult[]): readonly ContentBlock[] {
  const fork = forkOf(files.transcript, files.ref);
  const texts = [
    fork?.keptTurn === input.turn - 1 ? fork.note : undefined,
    input.last === undefined ? repeatNote(sealed) : undefined,
    ...(input.steering ?? []).map(({ text }) => text),
    input.last && LAST_TURN_TEXT[input.last],
    wasCut(files, input.turn - 1) ? 'Your reply reached the output limit. Go on exactly where it stopped.' : undefined,
  ];
  return texts.filter((text) => text !== undefined && text.trim() !== '').map((text) => ({ type: 'text', text }));
}

function wasCut(files: AgentFiles, turn: number): boolean {
  const reply = replyOf(files, turn);
  return reply?.stop === 'max_tokens' && reply.calls.length === 0;
}

export const LAST_TURN_TEXT: Readonly<Record<LastTurnReason, string>> = {
  max_turns:
    'You have reached the limit of turns. No more tools: answer now with what you have found and done, and what is left.',
  budget: 'The budget is used up. No more tools: answer now with what you have found and done, and what is left.',
  timeout: 'The time limit is reached. No more tools: answer now with what you have found and done, and what is left.',
  repeated_call:
    'The same call gave the same result too many times in a row, so the work stops here. No more tools: say what you have found and done, and what is left.',
};

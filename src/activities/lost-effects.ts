import { existsSync } from 'node:fs';
import { callFolder, openCallJournal } from '../effects/journal.ts';
import { hasJob } from '../jobs/job-folder.ts';
import type { AgentRef, TaskCall } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { INTERRUPTED } from '../store/messages.ts';
import { endOf } from '../store/meta.ts';
import type { AssistantMessageRecord, RecordedCall } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { Transcript } from '../store/transcript.ts';
import type { ToolResult } from '../tools/tool.ts';
import { refOf } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { sealedResult } from './earlier-result.ts';
import { keptResult } from './kept-result.ts';
import { unreadableOutcome } from './unreadable.ts';

/** Of a long list the model gets the head and how many more there are. */
const MAX_LINES = 60;

/**
 * What the model is told after a reset: the calls that had taken effect and are no longer in its conversation, those of
 * the sub-agents included. Undefined when there are none.
 */
export async function lostEffectsNote(
  deps: ActivityDeps,
  ref: AgentRef,
  transcript: Transcript,
  replies: readonly AssistantMessageRecord[],
): Promise<string | undefined> {
  const lines = await effectLines(deps, ref, transcript, replies);
  if (lines.length === 0) return undefined;
  const more = lines.length > MAX_LINES ? [`- and ${lines.length - MAX_LINES} more`] : [];
  return [HEAD, ...lines.slice(0, MAX_LINES), ...more, TAIL].join('\n');
}

const HEAD =
  'A person has set this conversation back to this point. What you did after it is no longer in the conversation, but ' +
  'the workspace is as it was left, and these calls had already taken effect:';
const UNKNOWN = 'interrupted; its effects are unknown';
const TAIL = 'Look at what is there before you make any of them again.';

async function effectLines(
  deps: ActivityDeps,
  ref: AgentRef,
  transcript: Transcript,
  replies: readonly AssistantMessageRecord[],
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const reply of replies) {
    for (const call of reply.calls) {
      if (call.task) lines.push(...(await childLines(deps, ref, call, call.task)));
      if (call.kind !== 'effect' || call.problem !== undefined) continue;
      const outcome = await outcomeOf(deps, refOf(ref, reply), transcript, call);
      if (outcome) lines.push(`- ${call.callId} ${call.summary}: ${outcome}`);
    }
  }
  return lines;
}

/** A child that never opened did nothing. */
async function childLines(
  deps: ActivityDeps,
  parent: AgentRef,
  { callId, summary }: RecordedCall,
  { agentId }: TaskCall,
): Promise<readonly string[]> {
  const ref = { ...parent, agentId };
  const file = transcriptFile(deps.home, ref);
  if (!existsSync(file)) return [];
  const transcript = await openCached(file);
  const replies = transcript.records.filter(
    (record): record is AssistantMessageRecord => record.type === 'message' && record.role === 'assistant',
  );
  const below = await effectLines(deps, ref, transcript, replies);
  const status = endOf(transcript.records)?.status ?? 'running';
  return [`- ${callId} ${summary}: the sub-agent ended as ${status}`, ...below.map((line) => `  ${line}`)];
}

async function outcomeOf(
  deps: ActivityDeps,
  ref: AgentRef,
  transcript: Transcript,
  call: RecordedCall,
): Promise<string | undefined> {
  try {
    return await recordedOutcome(deps, ref, transcript, call);
  } catch (error) {
    const unknown = unreadableOutcome(error);
    return wordsFor(sealedResult(transcript.records, call)) ?? unknown;
  }
}

async function recordedOutcome(
  deps: ActivityDeps,
  ref: AgentRef,
  transcript: Transcript,
  call: RecordedCall,
): Promise<string | undefined> {
  const folder = callFolder(deps.home, ref, call.callId);
  const kept = await keptResult(deps, ref, call);
  const isBegun = hasJob(folder) || (await openCallJournal(folder).readIntent()) !== undefined;
  if (!kept && isBegun) return UNKNOWN;
  return wordsFor(kept ?? sealedResult(transcript.records, call));
}

function wordsFor(result: ToolResult | undefined): string | undefined {
  if (!result) return undefined;
  if (result.text.startsWith(INTERRUPTED)) return UNKNOWN;
  return result.isError ? 'it gave an error' : 'done';
}

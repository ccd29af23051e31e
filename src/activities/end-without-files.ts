import { lstat } from 'node:fs/promises';
import { Context } from '@temporalio/activity';
import { defaultPayloadConverter } from '@temporalio/common';
import { isStoreGone } from '../failures.ts';
import { NO_USAGE, workflowId } from '../protocol.ts';
import type { AgentInput, AgentRef, AgentResult, AgentStatus, CloseInput } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { metaFromRecords, readMeta, writeMeta } from '../store/meta.ts';
import { GONE_EVENT, RECORD_VERSION, recordId } from '../store/records.ts';
import type { AgentMeta } from '../store/records.ts';
import { hasCode } from '../store/files.ts';
import { listAgents } from '../store/listing.ts';
import { openCached } from '../store/transcript.ts';
import { subtreeUsage, usageOf } from '../store/usage.ts';
import { openToClose } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { goneReason, isAway } from './gone.ts';
import { writeHeader } from './open-transcript.ts';
import { writeEnd } from './terminal-record.ts';
import { toFailure, troubleMs } from './trouble.ts';

/** An agent that cannot be closed in its transcript. */
export interface Unclosable {
  readonly close: CloseInput;
  /** What closing it the ordinary way met. */
  readonly error: unknown;
  /** Asked right before anything is written; throws for an attempt that is no longer the current one. */
  awake(): Promise<void>;
}

/** A person who stops a run has not to wait for a disk that is away. */
const CANCEL_WAITS_MS = 3_000;

/**
 * Ends an agent whose files are gone: where the transcript is missing or empty a new one says what is known, where
 * something else has its name only the meta file does. Throws any other error. While the home itself is away, only a
 * cancelled agent ends, and nothing is written.
 */
export async function endWithoutFiles(deps: ActivityDeps, { close, error, awake }: Unclosable): Promise<AgentResult> {
  const failure = toFailure(error, deps.home);
  const { agentId } = close.ref;
  if (isStoreGone(failure)) {
    deps.log.error({ agentId, error: failure.message }, 'the agent ends without its files');
    return writeLastWords(deps, close, failure.message, awake);
  }
  if (close.status !== 'cancelled' || !isAway(error, deps.home) || troubleMs() < CANCEL_WAITS_MS) throw error;
  deps.log.error({ agentId, error: String(error) }, 'the home is away; the agent is cancelled without a record');
  return toResult(close, 'cancelled', close.error);
}

async function writeLastWords(
  deps: ActivityDeps,
  close: CloseInput,
  reason: string,
  awake: () => Promise<void>,
): Promise<AgentResult> {
  const { ref } = close;
  // A person's stop stays one; what was to be a success is none without its files.
  const status = close.status === 'completed' ? 'failed' : close.status;
  const error = close.error ?? `Store.Gone: ${reason}`;
  const result = await withSubtree(deps, close, toResult(close, status, error));
  const files = await openIfReadable(deps, ref);
  if (files) {
    // It was something else that is gone, perhaps what a sub-agent has used: then the metas are what is known of that.
    const { own } = usageOf(files.transcript.records);
    const { subtree } = (await withSubtree(deps, close, { ...result, usage: { own, subtree: own } })).usage;
    const words = { status, turns: close.turn, error, subtree, confirm: awake };
    const end = await writeEnd(deps, ref, words);
    return { ...result, status: end.status, turns: end.turns, usage: end.usage, error: end.error };
  }
  const input = close.unopened ?? (await startedWith(deps));
  await awake();
  if (await isFree(transcriptFile(deps.home, ref))) await writeTranscript(deps, close, input, { result, reason });
  else await writeMeta(deps.home, ref, await endedMeta(deps, input, result));
  return result;
}

async function openIfReadable(deps: ActivityDeps, ref: AgentRef): Promise<AgentFiles | undefined> {
  try {
    return await openToClose(deps, ref);
  } catch (error) {
    if (goneReason(error, deps.home) === undefined) throw error;
    return undefined;
  }
}

/** The input of this workflow run, as the server has it. */
async function startedWith({ client, namespace }: ActivityDeps): Promise<AgentInput> {
  const { workflowExecution: execution } = Context.current().info;
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    namespace,
    execution,
    maximumPageSize: 1,
  });
  const [payload] = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  if (!payload) throw new Error(`the history of ${execution?.workflowId} has no input`);
  return defaultPayloadConverter.fromPayload<AgentInput>(payload);
}

/** Nothing is there that could be somebody's. */
async function isFree(file: string): Promise<boolean> {
  try {
    const stats = await lstat(file);
    return stats.isFile() && stats.size === 0;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true;
    throw error;
  }
}

interface LastWords {
  readonly result: AgentResult;
  readonly reason: string;
}

async function writeTranscript(
  deps: ActivityDeps,
  { ref, turn, usage }: CloseInput,
  input: AgentInput,
  { result, reason }: LastWords,
): Promise<void> {
  const { status, error } = result;
  const transcript = await openCached(transcriptFile(deps.home, ref), { create: true });
  await writeHeader(deps, ref, input, transcript, input.prompt ?? '');
  const id = (slot: string) => recordId({ ...ref, turn }, slot);
  const workflowRunId = Context.current().info.workflowExecution?.runId ?? '';
  const event = { type: 'event' as const, turn, name: GONE_EVENT, data: { reason, workflowRunId } };
  await transcript.append({ id: id(GONE_EVENT), ...event });
  const spent = { settled: true, outcome: 'complete' as const, usage: usage ?? NO_USAGE };
  await transcript.append({ id: id('usage.0'), type: 'usage', turn, attempt: 0, ...spent });
  const end = { epoch: ref.epoch, status, turns: turn, usage: result.usage };
  await transcript.append({
    id: recordId({ ...ref, turn: 0 }, 'end'),
    type: 'end',
    ...end,
    ...(error !== undefined && { error }),
  });
  await transcript.sync();
  await writeMeta(deps.home, ref, metaFromRecords(transcript.records));
}

async function endedMeta(deps: ActivityDeps, input: AgentInput, result: AgentResult): Promise<AgentMeta> {
  const { status, turns, usage, error = null } = result;
  const ended = { status, turns, usage, error, endedAt: new Date().toISOString() };
  const place = { runId: input.runId, agentId: input.agentId, transcript: input.transcript };
  const known = await readMeta(deps.home, place).catch(() => undefined);
  return { ...(known ?? identityOf(input)), ...ended };
}

function identityOf(input: AgentInput): Omit<AgentMeta, 'status' | 'turns' | 'usage' | 'error' | 'endedAt'> {
  const { runId, agentId, parent, agentType, description, depth, trace, carried } = input;
  return {
    v: RECORD_VERSION,
    agentId,
    parentAgentId: parent?.agentId ?? null,
    runId,
    callId: parent?.callId ?? null,
    workflowId: workflowId(runId, agentId),
    agentType,
    description,
    depth,
    traceId: trace.traceId,
    spanId: trace.spanId,
    startedAt: new Date(carried?.startedAtMs ?? Context.current().info.scheduledTimestampMs).toISOString(),
  };
}

/** Its children's files may be gone with its own: what is left of them counts. */
async function withSubtree(deps: ActivityDeps, { ref }: CloseInput, result: AgentResult): Promise<AgentResult> {
  const { agents } = await listAgents(deps.home, ref.transcript);
  const self = { agentId: ref.agentId, parentAgentId: null, usage: result.usage };
  const subtree = subtreeUsage([...agents.filter(({ agentId }) => agentId !== ref.agentId), self], ref.agentId);
  return { ...result, usage: { ...result.usage, subtree } };
}

function toResult({ ref, turn, usage = NO_USAGE }: CloseInput, status: AgentStatus, error?: string): AgentResult {
  const facts = { agentId: ref.agentId, status, turns: turn, preview: '', textBytes: 0 };
  return {
    ...facts,
    usage: { own: usage, subtree: usage },
    ...(error !== undefined && { error: error.slice(0, 500) }),
  };
}

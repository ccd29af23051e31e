import { randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { crashPoint } from '../crash-points.ts';
import { ModelError } from '../model/model.ts';
import type { ModelReply, ModelRequest } from '../model/model.ts';
import { NO_USAGE } from '../protocol.ts';
import { recordId } from '../store/records.ts';
import type { AttemptRecord, UsageRecord } from '../store/records.ts';
import type { RecordDraft } from '../store/transcript.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import type { Fence } from './fence.ts';
import type { Pulse } from './heartbeat.ts';
import { holdReply, messagesSha256, replyInHand } from './replies-in-hand.ts';

/** What a request is sent under: the life of its activity, and whether it is still this attempt's to send. */
export interface AttemptGuard {
  readonly pulse: Pulse;
  readonly fence: Fence;
}

/** A whole reply, and the record of what it cost, which is not written yet: the two go into the transcript together. */
export interface PaidReply {
  readonly reply: ModelReply;
  readonly usage: RecordDraft;
}

/**
 * Sends one request. It is recorded before it leaves. A failed one is settled here; a whole reply is settled by whoever
 * records it, or by `settlePaid` where it cannot be recorded.
 */
export async function attemptOnce(
  deps: ActivityDeps,
  files: AgentFiles,
  turn: number,
  request: ModelRequest,
  { pulse, fence }: AttemptGuard,
): Promise<PaidReply> {
  await fence.passAgain(files, turn);
  const held = replyInHand(files, turn, request);
  if (held) return held;
  crashPoint('attempt.before');
  const attempt = await recordAttempt(files, request, turn);
  crashPoint('attempt.after');
  try {
    await fence.passAgain(files, turn).catch((error: unknown) => settleUnsent(files, attempt, error));
    const reply = await deps.model.send(request, {
      signal: pulse.signal,
      onProgress: ({ outputChars, lastText }) => pulse.progress(`${outputChars} characters · ${lastText.slice(-160)}`),
    });
    const { usage, requestId } = reply;
    const paid = { reply, usage: toUsage(files, attempt, { settled: true, outcome: 'complete', usage, requestId }) };
    holdReply(files, turn, { attempt, paid, toolChoice: request.toolChoice });
    return paid;
  } catch (error) {
    if (error instanceof ModelError) await settleFailure(deps, files, attempt, error);
    throw error;
  }
}

/** Records what a reply cost that is not recorded itself. Also from a stale attempt: spent is spent. */
export async function settlePaid(files: AgentFiles, { usage }: PaidReply): Promise<void> {
  await files.transcript.append(usage, { sync: true });
}

/** Two attempts that race get different numbers: the loser of an id takes the next one. */
async function recordAttempt(files: AgentFiles, request: ModelRequest, turn: number): Promise<AttemptRecord> {
  const { info } = Context.current();
  const body = JSON.stringify(request.messages);
  const writer = randomUUID();
  for (let number = 1; ; number++) {
    const id = recordId({ ...files.ref, turn }, `attempt.${number}`);
    if (files.transcript.get(id)) continue;
    const draft: RecordDraft = {
      id,
      type: 'attempt',
      turn,
      attempt: number,
      model: request.model,
      maxTokens: request.maxTokens,
      inputTokensMax: Buffer.byteLength(JSON.stringify([request.system, request.tools])) + Buffer.byteLength(body),
      requestSha256: messagesSha256(body),
      workflowRunId: info.workflowExecution?.runId ?? '',
      activityAttempt: info.attempt,
      writer,
    };
    const { record } = await files.transcript.append(draft, { sync: true });
    if (record.type === 'attempt' && record.writer === writer) return record;
  }
}

type Settlement = Pick<UsageRecord, 'settled' | 'outcome' | 'usage' | 'requestId' | 'error'>;

function toUsage({ ref }: AgentFiles, { turn, attempt }: AttemptRecord, settlement: Settlement): RecordDraft {
  return { id: recordId({ ...ref, turn }, `usage.${attempt}`), type: 'usage', turn, attempt, ...settlement };
}

/** Always passes, also from a stale attempt: spent is spent. */
async function settle(files: AgentFiles, attempt: AttemptRecord, settlement: Settlement): Promise<void> {
  await files.transcript.append(toUsage(files, attempt, settlement), { sync: true });
}

/** Nothing was sent, so nothing is owed: without this the attempt would count as unsettled for ever. */
async function settleUnsent(files: AgentFiles, attempt: AttemptRecord, error: unknown): Promise<never> {
  await settle(files, attempt, { settled: true, outcome: 'error', usage: NO_USAGE, error: 'not sent' });
  throw error;
}

async function settleFailure(
  deps: ActivityDeps,
  files: AgentFiles,
  attempt: AttemptRecord,
  error: ModelError,
): Promise<void> {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokensMin: outputTokens } = error.seen;
  const tokens = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens };
  const wasAnswered = inputTokens + cacheReadTokens + cacheWriteTokens > 0;
  await settle(files, attempt, {
    settled: error.isSettled,
    outcome: wasAnswered ? 'cut' : 'error',
    // A connection that never opened carried no request.
    usage: { ...tokens, requests: error.wasSent ? 1 : 0, costUsd: deps.model.price(attempt.model, tokens) },
    requestId: error.requestId,
    error: error.kind,
  });
}

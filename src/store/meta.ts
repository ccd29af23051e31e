import { crashPoint } from '../crash-points.ts';
import { AGENT_STATUSES } from '../protocol.ts';
import { conversation, headOf, isSameBranch } from './chain.ts';
import { readSmallFile, writeAtomic } from './files.ts';
import { metaFile, transcriptFile } from './layout.ts';
import type { AgentPlace } from './layout.ts';
import { isUsage, parseJson } from './parse.ts';
import { readTranscript } from './read.ts';
import { RECORD_VERSION } from './records.ts';
import type { AgentMeta, EndRecord, SessionMetaRecord, TranscriptRecord } from './records.ts';
import { usageOf } from './usage.ts';

const MAX_META_BYTES = 256 * 1024;

/** Replaces the agent's meta file in one step. */
export async function writeMeta(home: string, place: AgentPlace, meta: AgentMeta): Promise<void> {
  crashPoint('meta.before');
  await writeAtomic(metaFile(home, place), `${JSON.stringify(meta, null, 2)}\n`);
  crashPoint('meta.after');
}

/** Reads the agent's meta file; throws when it is missing, damaged or another agent's. */
export async function readMeta(home: string, place: AgentPlace): Promise<AgentMeta> {
  const file = metaFile(home, place);
  const value = parseJson(await readSmallFile(file, MAX_META_BYTES));
  if (!isAgentMeta(value)) throw new Error(`${file} is not the meta file of an agent`);
  if (value.runId === place.runId && value.agentId === place.agentId) return value;
  throw new Error(`${file} is of agent ${value.agentId} of run ${value.runId}`);
}

/** The agent's meta, made again from its transcript when the file is missing or damaged. Writes only with `repair`. */
export async function loadMeta(
  home: string,
  place: AgentPlace,
  options: { repair?: boolean } = {},
): Promise<AgentMeta> {
  try {
    return await readMeta(home, place);
  } catch {
    // Whatever was wrong with it: the transcript has all of it, and what is wrong with that one is thrown.
    const meta = await rebuildMeta(home, place);
    if (options.repair) await writeMeta(home, place, meta);
    return meta;
  }
}

/**
 * Meta from a transcript's records. A transcript knows nothing of its children's files: the subtree is the one of the
 * terminal record, or the agent's own usage while there is none (`subtreeUsage` sums exactly).
 */
export function metaFromRecords(records: readonly TranscriptRecord[]): AgentMeta {
  const session = records.find((record) => record.type === 'session_meta');
  if (session === undefined) throw new Error('the transcript has no session_meta record');
  const end = endOf(records);
  const { own } = usageOf(records);
  return {
    ...identityOf(session),
    status: end?.status ?? 'running',
    startedAt: session.at,
    endedAt: end?.at ?? null,
    turns: end?.turns ?? lastTurn(records),
    usage: { own, subtree: end?.usage.subtree ?? own },
    error: end?.error ?? null,
  };
}

/** Terminal record of the current epoch and branch: an agent that was continued or reset runs again. */
export function endOf(records: readonly TranscriptRecord[]): EndRecord | undefined {
  const head = headOf(records);
  return head && records.find((record): record is EndRecord => record.type === 'end' && isSameBranch(record, head));
}

async function rebuildMeta(home: string, place: AgentPlace): Promise<AgentMeta> {
  const file = transcriptFile(home, place);
  const { records, meta } = await readTranscript(file);
  if (meta?.runId === place.runId && meta.agentId === place.agentId) return metaFromRecords(records);
  throw new Error(
    meta === undefined
      ? `${file} has no session_meta record`
      : `${file} is of agent ${meta.agentId} of run ${meta.runId}`,
  );
}

function identityOf(session: SessionMetaRecord) {
  return {
    v: RECORD_VERSION,
    agentId: session.agentId,
    parentAgentId: session.parentAgent?.agentId ?? null,
    runId: session.runId,
    callId: session.parentAgent?.callId ?? null,
    workflowId: session.workflowId,
    agentType: session.agentType,
    description: session.description,
    depth: session.depth,
    traceId: session.trace.traceId,
    spanId: session.trace.spanId,
  };
}

function lastTurn(records: readonly TranscriptRecord[]): number {
  return conversation(records).reduce(
    (last, record) => (record.type === 'message' ? Math.max(last, record.turn) : last),
    0,
  );
}

function isAgentMeta(value: unknown): value is AgentMeta {
  if (typeof value !== 'object' || value === null) return false;
  const meta = value as Readonly<Record<string, unknown>>;
  const strings = ['agentId', 'runId', 'workflowId', 'agentType', 'description', 'traceId', 'spanId', 'startedAt'];
  const nullable = ['parentAgentId', 'callId', 'endedAt', 'error'];
  return (
    strings.every((name) => typeof meta[name] === 'string') &&
    nullable.every((name) => meta[name] === null || typeof meta[name] === 'string') &&
    ['v', 'depth', 'turns'].every((name) => typeof meta[name] === 'number') &&
    [...AGENT_STATUSES, 'running'].includes(String(meta['status'])) &&
    hasBothUsages(meta['usage'])
  );
}

function hasBothUsages(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return 'own' in value && isUsage(value.own) && 'subtree' in value && isUsage(value.subtree);
}

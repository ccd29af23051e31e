import { stat } from 'node:fs/promises';
import { transcriptFile } from '../store/layout.ts';
import { metaFromRecords } from '../store/meta.ts';
import { readTranscript } from '../store/read.ts';
import type { AgentMeta, TranscriptRecord } from '../store/records.ts';
import { unreadable } from './context.ts';

/** A longer transcript is not read for a list. */
const MAX_BYTES = 32 * 1024 * 1024;

/** An agent as of now. */
export interface LiveAgent {
  readonly meta: AgentMeta;
  /** When it last got on; for an agent that has not ended. */
  readonly lastMove: Date;
  /** Why its transcript could not be read: `meta` is then as old as its file. */
  readonly problem?: string;
}

/** An agent's meta as of now: the file is written when an agent starts and ends, what is between is in its transcript. */
export async function liveMeta(home: string, transcript: string, meta: AgentMeta): Promise<LiveAgent> {
  const stored = { meta, lastMove: new Date(meta.endedAt ?? meta.startedAt) };
  if (meta.endedAt !== null) return stored;
  const file = transcriptFile(home, { runId: meta.runId, agentId: meta.agentId, transcript });
  const stats = await stat(file).catch(() => undefined);
  if (stats !== undefined && stats.size > MAX_BYTES) return { meta, lastMove: stats.mtime };
  try {
    const { records } = await readTranscript(file);
    if (!records.some((record) => record.type === 'session_meta')) return stored;
    return { meta: metaFromRecords(records), lastMove: new Date(records.findLast(isProgress)?.at ?? meta.startedAt) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { ...stored, problem: unreadable(file, error) };
  }
}

/** A failed attempt at a model call, or the start of one, is no progress: an outage lasts since the last that was. */
export function isProgress(record: TranscriptRecord): boolean {
  return record.type !== 'attempt' && (record.type !== 'usage' || record.outcome === 'complete');
}

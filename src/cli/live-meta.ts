import { stat } from 'node:fs/promises';
import { transcriptFile } from '../store/layout.ts';
import { metaFromRecords } from '../store/meta.ts';
import { readTranscript } from '../store/read.ts';
import type { AgentMeta } from '../store/records.ts';

/** A longer transcript is not read for a list. */
const MAX_BYTES = 32 * 1024 * 1024;

/** An agent's meta as of now: the file is written when an agent starts and ends, what is between is in its transcript. */
export async function liveMeta(home: string, transcript: string, meta: AgentMeta): Promise<AgentMeta> {
  if (meta.endedAt !== null) return meta;
  const file = transcriptFile(home, { runId: meta.runId, agentId: meta.agentId, transcript });
  const stats = await stat(file).catch(() => undefined);
  if (stats === undefined || stats.size > MAX_BYTES) return meta;
  const { records } = await readTranscript(file);
  return records.some((record) => record.type === 'session_meta') ? metaFromRecords(records) : meta;
}

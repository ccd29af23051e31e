import type { AgentRef, AgentStatus, Usage } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { loadSubtreeUsage } from '../store/subtree-usage.ts';
import { writeMeta, metaFromRecords } from '../store/meta.ts';
import { recordId } from '../store/records.ts';
import type { EndRecord } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { Transcript } from '../store/transcript.ts';
import { usageOf } from '../store/usage.ts';
import type { ActivityDeps } from './deps.ts';

/** The terminal record of this epoch and branch, once there is one. */
export function endOf(transcript: Transcript, ref: AgentRef): EndRecord | undefined {
  const record = transcript.get(recordId({ ...ref, turn: 0 }, 'end'));
  return record?.type === 'end' ? record : undefined;
}

export interface EndInput {
  readonly status: AgentStatus;
  readonly turns: number;
  readonly error?: string;
  /** What the agent and those below it have used. Default: as their transcripts say. */
  readonly subtree?: Usage;
  /** Asked right before anything is written; throws for an attempt that is no longer the current one. */
  confirm?(): Promise<void>;
}

/** Writes the one terminal record and the meta file; the first one of an epoch stands. */
export async function writeEnd(deps: ActivityDeps, ref: AgentRef, input: EndInput): Promise<EndRecord> {
  const transcript = await openCached(transcriptFile(deps.home, ref));
  const subtree = input.subtree ?? (await subtreeUsage(deps, ref));
  await input.confirm?.();
  const { record } = await transcript.append({
    id: recordId({ ...ref, turn: 0 }, 'end'),
    type: 'end',
    epoch: ref.epoch,
    status: input.status,
    turns: input.turns,
    usage: { own: usageOf(transcript.records).own, subtree },
    ...(input.error !== undefined && { error: input.error.slice(0, 500) }),
  });
  await transcript.sync();
  await input.confirm?.();
  await writeMeta(deps.home, ref, metaFromRecords(transcript.records));
  return record as EndRecord;
}

async function subtreeUsage(deps: ActivityDeps, ref: AgentRef): Promise<Usage> {
  return loadSubtreeUsage(deps.home, ref);
}

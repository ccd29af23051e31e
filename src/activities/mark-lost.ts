import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { agentFolder, scratchFolder } from '../effects/journal.ts';
import { endJobsOf } from '../jobs/cancel-job.ts';
import type { AgentRef } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { metaFromRecords, writeMeta } from '../store/meta.ts';
import { positionOf, recordId } from '../store/records.ts';
import { openCached } from '../store/transcript.ts';
import type { Transcript } from '../store/transcript.ts';
import type { ActivityDeps } from './deps.ts';
import { endOf, writeEnd } from './terminal-record.ts';

/**
 * Ends an agent in the place of its workflow, which the server closed without its last words (terminated), in whichever
 * branch it was. `confirm` is asked right before something of it is ended or written, and throws for one that goes on.
 */
export async function markLost(
  deps: ActivityDeps,
  agent: Pick<AgentRef, 'runId' | 'agentId' | 'transcript'>,
  error: string,
  confirm?: () => Promise<void>,
): Promise<void> {
  const transcript = await openCached(transcriptFile(deps.home, agent));
  const { epoch, branch } = positionOf(transcript.tip ?? '');
  const ref = { ...agent, epoch, branch };
  // Whoever wrote it may have died before the meta file said so.
  if (endOf(transcript, ref)) return writeMeta(deps.home, ref, metaFromRecords(transcript.records));
  await endJobsOf(agentFolder(deps.home, ref), confirm);
  await confirm?.();
  await rm(scratchFolder(deps.home, ref), { recursive: true, force: true });
  await awaitSettled(transcript);
  const turns = transcript.records.reduce((most, record) => ('turn' in record ? Math.max(most, record.turn) : most), 0);
  await writeEnd(deps, ref, { status: 'lost', turns, error, confirm });
}

/** A model call feels the end of its workflow at the next heartbeat, and only then settles what it has cost. */
const SETTLES_WITHIN_MS = 15_000;

async function awaitSettled(transcript: Transcript): Promise<void> {
  const deadline = Date.now() + SETTLES_WITHIN_MS;
  while (hasOpenAttempt(transcript) && Date.now() < deadline) {
    await sleep(200);
    await transcript.refresh();
  }
}

/** Only the newest attempt can still be under way. */
function hasOpenAttempt({ records }: Transcript): boolean {
  const last = records.findLast((record) => record.type === 'attempt');
  if (last === undefined) return false;
  const usageId = recordId(positionOf(last.id), `usage.${last.attempt}`);
  return !records.some(({ id }) => id === usageId);
}

import { WorkflowNotFoundError } from '@temporalio/client';
import { stat } from 'node:fs/promises';
import { TRANSCRIPT_MEMO } from '../protocol.ts';
import { runFolder, runIdOfStem } from '../store/layout.ts';
import { dayFolders } from '../store/listing.ts';
import { readBareStart } from '../store/start-note.ts';
import type { NamedServer } from './fate.ts';

/** A start is over within seconds, or never. */
const OVER_AFTER_MS = 3600_000;

/** What a start that was cut short has left. */
export interface AbandonedStart {
  readonly stem: string;
  readonly runId: string;
  /** No other run, started or not, goes by its id: what else is named after the id is its own. */
  readonly isOnly: boolean;
}

/**
 * Starts that were cut short: the server that their note names knows no such run, so no worker will ever ask for their
 * files. A folder without a note, of another server, or with anything else in it is left alone.
 */
export async function findAbandonedStarts(home: string, server: NamedServer): Promise<readonly AbandonedStart[]> {
  const stems: string[] = [];
  const others: string[] = [];
  for await (const { folder, names, unopened } of dayFolders(home, () => undefined)) {
    others.push(...names.map((name) => name.replace(/\.jsonl$/, '')));
    for (const name of unopened) {
      const stem = `${folder}/${name}`;
      // One that cannot be looked at is left alone; listings name it.
      const list = (await isAbandoned(home, stem, server).catch(() => false)) ? stems : others;
      list.push(stem);
    }
  }
  return stems.map((stem) => {
    const runId = runIdOfStem(stem);
    return { stem, runId, isOnly: !others.some((other) => other.endsWith(`-${runId}`)) };
  });
}

async function isAbandoned(home: string, stem: string, server: NamedServer): Promise<boolean> {
  const note = await readBareStart(home, stem);
  if (note === undefined || note.clusterId !== server.clusterId || note.namespace !== server.namespace) return false;
  const { mtimeMs } = await stat(runFolder(home, stem));
  if (Date.now() - mtimeMs < OVER_AFTER_MS || isAlive(note.pid)) return false;
  return !(await hasStarted(server, runIdOfStem(stem), stem));
}

/** Also a run that has ended unopened counts: while the server knows it, a person can reset it. */
async function hasStarted({ client }: NamedServer, runId: string, stem: string): Promise<boolean> {
  try {
    const { memo } = await client.workflow.getHandle(runId).describe();
    return memo?.[TRANSCRIPT_MEMO] === stem;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

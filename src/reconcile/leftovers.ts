import { existsSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { agentFolder, scratchFolder } from '../effects/journal.ts';
import { homePaths } from '../home.ts';
import { cancelJob, listOpenJobs } from '../jobs/cancel-job.ts';
import type { AgentRef } from '../protocol.ts';
import { allInstances } from '../server/instance.ts';
import { readLock } from '../server/life-lock.ts';
import { metaFile, runFolder, transcriptFile } from '../store/layout.ts';
import { listAgents, listRuns } from '../store/listing.ts';
import { metaFromRecords, readMeta, writeMeta } from '../store/meta.ts';
import { readTranscript } from '../store/read.ts';
import type { AgentMeta } from '../store/records.ts';
import { findAbandonedStarts } from './abandoned-starts.ts';
import type { NamedServer } from './fate.ts';

/** Something that outlived what it was for. */
export interface Leftover {
  readonly kind: 'start' | 'job' | 'scratch' | 'temporary' | 'socket' | 'meta';
  readonly path: string;
  /** What it is, for people. */
  readonly note: string;
}

/** What became of one. */
export interface CleanedLeftover extends Leftover {
  /** Present: it is still there, and why. */
  readonly problem?: string;
}

/**
 * Lists open jobs and scratch folders of ended agents, stale sockets, old temporary files, wrong meta files; with a
 * server that can be asked, starts that were cut short.
 */
export async function findLeftovers(home: string, server?: NamedServer): Promise<readonly Leftover[]> {
  const agents = await knownAgents(home);
  return [
    ...(await jobsOfEnded(home, agents)),
    ...scratchOfEnded(home, agents),
    ...(await temporaryFiles(home)),
    ...staleSockets(home),
    ...wrongMetas(home, agents),
    ...(server ? await abandonedStarts(home, server) : []),
  ];
}

/** Removes them one by one; what cannot be removed is told and does not stop the rest. */
export async function cleanLeftovers(home: string, found: readonly Leftover[]): Promise<readonly CleanedLeftover[]> {
  const agents = await knownAgents(home);
  const cleaned: CleanedLeftover[] = [];
  for (const leftover of found) {
    try {
      await clean(home, agents, leftover);
      cleaned.push(leftover);
    } catch (error) {
      cleaned.push({ ...leftover, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  return cleaned;
}

interface KnownAgent {
  readonly place: Pick<AgentRef, 'runId' | 'agentId' | 'transcript'>;
  /** By its transcript: a meta file may be what is wrong. */
  readonly meta: AgentMeta;
  readonly hasRightFile: boolean;
}

/** By the agent's folder in the journal. */
type Agents = ReadonlyMap<string, KnownAgent>;

async function knownAgents(home: string): Promise<Agents> {
  const agents = new Map<string, KnownAgent>();
  for (const { transcript } of (await listRuns(home)).runs) {
    for (const { runId, agentId } of (await listAgents(home, transcript)).agents) {
      const place = { runId, agentId, transcript };
      // One whose transcript cannot be read is left alone; the comparison names it.
      const agent = await lookAt(home, place).catch(() => undefined);
      if (agent) agents.set(agentFolder(home, place), agent);
    }
  }
  return agents;
}

async function lookAt(home: string, place: KnownAgent['place']): Promise<KnownAgent> {
  const stored = await readMeta(home, place).catch(() => undefined);
  if (stored !== undefined && stored.endedAt !== null) return { place, meta: stored, hasRightFile: true };
  const { records } = await readTranscript(transcriptFile(home, place));
  const meta = metaFromRecords(records);
  return { place, meta, hasRightFile: stored?.status === meta.status };
}

async function jobsOfEnded(home: string, agents: Agents): Promise<readonly Leftover[]> {
  const jobs = await listOpenJobs(homePaths(home).journal);
  const left = jobs.filter((job) => isEnded(agents, agentFolder(home, job)));
  return left.map(({ folder, command }) => {
    const note = `command of an agent that has ended: ${JSON.stringify(command.slice(0, 80))}`;
    return { kind: 'job', path: folder, note };
  });
}

// An agent that no transcript knows may be one whose files are on their way back from a copy: it is left alone.
function isEnded(agents: Agents, folder: string): boolean {
  const agent = agents.get(folder);
  return agent !== undefined && agent.meta.status !== 'running';
}

function scratchOfEnded(home: string, agents: Agents): readonly Leftover[] {
  const ended = [...agents].filter(([folder]) => isEnded(agents, folder));
  return ended
    .map(([, { place }]) => scratchFolder(home, place))
    .filter((path) => existsSync(path))
    .map((path) => ({ kind: 'scratch', path, note: 'files that the commands of an ended agent left' }));
}

/** What whole writes leave when their process is killed. Nobody works on one for longer than seconds. */
const TEMPORARY_NAMES =
  /^\.(draft|job)-[0-9a-f-]{36}$|^\..+\.[0-9a-f]{12}\.tmp$|^(supervisor\.lock|home-id)(\.breaker)?\.\d+\./;
const TEMPORARY_AFTER_MS = 3600_000;
/** Folders whose names are the commands' own. */
const FOREIGN_FOLDERS: ReadonlySet<string> = new Set(['scratch', 'aside', 'results']);

async function temporaryFiles(home: string): Promise<readonly Leftover[]> {
  const { transcripts, journal, server } = homePaths(home);
  const found: Leftover[] = [];
  for (const top of [transcripts, journal, server].filter((folder) => existsSync(folder))) {
    for (const name of await readdir(top, { recursive: true })) {
      const path = join(top, name);
      if (isTemporary(name) && (await ageMs(path)) > TEMPORARY_AFTER_MS)
        found.push({ kind: 'temporary', path, note: 'an unfinished write' });
    }
  }
  return found;
}

function isTemporary(path: string): boolean {
  const names = path.split(sep);
  return !names.some((name) => FOREIGN_FOLDERS.has(name)) && TEMPORARY_NAMES.test(names.at(-1) ?? '');
}

async function ageMs(path: string): Promise<number> {
  // It may have been renamed meanwhile: then it was no leftover.
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? 0 : Date.now() - stats.mtimeMs;
}

function staleSockets(home: string): readonly Leftover[] {
  const stale = allInstances(home).filter(({ control, lock }) => existsSync(control) && !readLock(lock));
  return stale.map(({ control }) => ({ kind: 'socket', path: control, note: 'its supervisor is gone' }));
}

function wrongMetas(home: string, agents: Agents): readonly Leftover[] {
  const wrong = [...agents.values()].filter(({ hasRightFile }) => !hasRightFile);
  return wrong.map(({ place, meta }) => {
    const note = `missing, damaged or older than its transcript, which says ${meta.status}`;
    return { kind: 'meta', path: metaFile(home, place), note };
  });
}

async function abandonedStarts(home: string, server: NamedServer): Promise<readonly Leftover[]> {
  const note = 'of a run whose start was cut short: the server does not know it';
  const folders = (await findAbandonedStarts(home, server)).flatMap(({ stem, runId, isOnly }) => {
    const snapshot = join(homePaths(home).snapshots, runId);
    return [runFolder(home, stem), ...(isOnly && existsSync(snapshot) ? [snapshot] : [])];
  });
  return folders.map((path) => ({ kind: 'start', path, note }));
}

async function clean(home: string, agents: Agents, { kind, path }: Leftover): Promise<void> {
  if (kind === 'job') return cancelJob(path);
  if (kind !== 'meta') return rm(path, { recursive: true, force: true });
  const agent = [...agents.values()].find(({ place }) => metaFile(home, place) === path);
  if (agent) await writeMeta(home, agent.place, agent.meta);
}

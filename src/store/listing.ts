import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from './files.ts';
import { agentIdOfFile, rootTranscriptFile, runIdOfStem, subagentsFolder, transcriptsRoot } from './layout.ts';
import type { AgentPlace } from './layout.ts';
import { loadMeta, metaFromRecords, readMeta } from './meta.ts';
import { readFirstRecord, readLastRecords, readTranscript } from './read.ts';
import type { AgentMeta } from './records.ts';

/** One run of a listing. */
export interface RunListing {
  readonly runId: string;
  /** Stem of its files. */
  readonly transcript: string;
  /** The root agent's. */
  readonly meta: AgentMeta;
  /** Without a meta file and too long to be read whole for a list: turns and usage are those of the ends seen. */
  readonly isPartial: boolean;
}

/** A file that is not what its place says; shown, and never in the way of the others. */
export interface ListingProblem {
  /** Path with control characters escaped: for people only. */
  readonly file: string;
  readonly reason: string;
  /** It is the folder of a run that has no transcript: nothing is wrong with the file itself. */
  readonly isUnopened?: true;
}

/** Agents of a run as a tree; `agents` are the children. */
export type AgentNode<Agent extends AgentMeta = AgentMeta> = Agent & { readonly agents: readonly AgentNode<Agent>[] };

/** A transcript up to this size is read whole when its meta file is missing. */
const WHOLE_BYTES = 4 * 1024 * 1024;
const READS_AT_A_TIME = 16;

/** Runs, newest first, from their small files: never opens a descendant's file, however many there are. */
export async function listRuns(
  home: string,
  options: { limit?: number } = {},
): Promise<{ runs: RunListing[]; problems: ListingProblem[] }> {
  const { limit = Infinity } = options;
  const runs: RunListing[] = [];
  const problems: ListingProblem[] = [];
  const days = dayFolders(home, (folder, error) => problems.push(problem(folder, error)));
  for await (const { folder, names, unopened } of days) {
    problems.push(
      ...unopened.map((name) => ({ file: `${folder}/${name}`, reason: UNOPENED, isUnopened: true as const })),
    );
    for (const some of inGroups(names)) {
      if (runs.length >= limit) return { runs: runs.slice(0, limit), problems };
      for (const found of await Promise.all(some.map((name) => listRun(home, folder, name)))) {
        if ('reason' in found) problems.push(found);
        else runs.push(found);
      }
    }
  }
  return { runs: runs.slice(0, limit), problems };
}

/** Its folder is made before its start; a transcript that was there was taken away. */
const UNOPENED =
  'a run without a transcript: it waits for a worker (errand show with its whole id asks the server), its start failed, or the file was taken away';

/** Every agent of a run, the root first, then by start; meta is made from the transcript where its file is missing. */
export async function listAgents(
  home: string,
  stem: string,
): Promise<{ agents: AgentMeta[]; problems: ListingProblem[] }> {
  const runId = runIdOfStem(stem);
  const children = [...new Set((await namesIn(subagentsFolder(home, stem))).map(agentIdOfFile))];
  const agents: AgentMeta[] = [];
  const problems: ListingProblem[] = [];
  for (const some of inGroups([runId, ...children.filter((id) => id !== undefined)])) {
    for (const found of await Promise.all(
      some.map((agentId) => listAgent(home, { runId, agentId, transcript: stem })),
    )) {
      if ('reason' in found) problems.push(found);
      else agents.push(found);
    }
  }
  return { agents: agents.sort(byStart), problems };
}

/** Nests agents under their parents. One whose parent is not among them comes out on top, so none is ever hidden. */
export function agentTree<Agent extends AgentMeta>(agents: readonly Agent[]): AgentNode<Agent>[] {
  const known = new Set(agents.map((agent) => agent.agentId));
  const placed = new Set<string>();
  const toNode = (agent: Agent): AgentNode<Agent> => {
    placed.add(agent.agentId);
    const children = agents.filter((child) => child.parentAgentId === agent.agentId && !placed.has(child.agentId));
    return { ...agent, agents: children.toSorted(byCall).map(toNode) };
  };
  const tops = agents.filter((agent) => agent.parentAgentId === null || !known.has(agent.parentAgentId)).map(toNode);
  // Only damaged files name each other as parents; they are still shown.
  for (const agent of agents) if (!placed.has(agent.agentId)) tops.push(toNode(agent));
  return tops;
}

/** In the order in which the parent asked for them: turn, then index (`t10.2` after `t9.0`). */
function byCall(a: AgentMeta, b: AgentMeta): number {
  return (a.callId ?? '').localeCompare(b.callId ?? '', 'en', { numeric: true });
}

/** Day folders with their transcripts' names, newest first both. A folder that cannot be read goes to `onProblem`. */
export async function* dayFolders(
  home: string,
  onProblem: (folder: string, error: unknown) => void,
): AsyncGenerator<{ folder: string; names: string[]; unopened: string[] }> {
  const root = transcriptsRoot(home);
  const newestIn = async (folder: string, name: RegExp) => {
    const names = await namesIn(join(root, folder)).catch((error: unknown) => {
      onProblem(join(root, folder), error);
      return [];
    });
    return names
      .filter((candidate) => name.test(candidate))
      .sort()
      .reverse();
  };
  for (const year of await newestIn('', /^\d{4}$/)) {
    for (const month of await newestIn(year, /^\d\d$/)) {
      for (const day of await newestIn(`${year}/${month}`, /^\d\d$/)) {
        const folder = `${year}/${month}/${day}`;
        const names = await newestIn(folder, /\.jsonl$|^rollout-[^.]*$/);
        const isThere = new Set(names);
        yield {
          folder,
          names: names.filter((name) => name.endsWith('.jsonl')),
          unopened: names.filter((name) => !name.endsWith('.jsonl') && !isThere.has(`${name}.jsonl`)),
        };
      }
    }
  }
}

async function listRun(home: string, folder: string, name: string): Promise<RunListing | ListingProblem> {
  const file = join(transcriptsRoot(home), folder, name);
  try {
    const transcript = `${folder}/${name.slice(0, -'.jsonl'.length)}`;
    const runId = runIdOfStem(transcript);
    const size = await sizeOfRegular(file);
    const place = { runId, agentId: runId, transcript };
    const stored = await readMeta(home, place).catch(() => undefined);
    if (stored !== undefined) return { runId, transcript, meta: stored, isPartial: false };
    return { runId, transcript, ...(await metaWithoutFile(home, place, size)) };
  } catch (error) {
    return problem(file, error);
  }
}

async function metaWithoutFile(
  home: string,
  place: AgentPlace,
  size: number,
): Promise<Pick<RunListing, 'meta' | 'isPartial'>> {
  const file = rootTranscriptFile(home, place.transcript);
  const first = await readFirstRecord(file);
  if (first.runId !== place.runId || first.agentId !== place.agentId) {
    throw new Error(`the transcript is of agent ${first.agentId} of run ${first.runId}`);
  }
  if (size <= WHOLE_BYTES) return { meta: metaFromRecords((await readTranscript(file)).records), isPartial: false };
  return { meta: metaFromRecords([first, ...(await readLastRecords(file))]), isPartial: true };
}

async function listAgent(home: string, place: AgentPlace): Promise<AgentMeta | ListingProblem> {
  try {
    return await loadMeta(home, place);
  } catch (error) {
    return problem(`${place.transcript}: agent ${place.agentId}`, error);
  }
}

async function sizeOfRegular(file: string): Promise<number> {
  const stats = await lstat(file);
  if (!stats.isFile()) throw new Error(stats.isDirectory() ? 'it is a folder' : 'it is not a regular file');
  if (stats.size === 0) throw new Error('the file is empty');
  return stats.size;
}

function problem(file: string, error: unknown): ListingProblem {
  const reason = error instanceof Error ? error.message : String(error);
  return { file: JSON.stringify(file).slice(1, -1), reason };
}

function byStart(a: AgentMeta, b: AgentMeta): number {
  return a.depth - b.depth || a.startedAt.localeCompare(b.startedAt) || a.agentId.localeCompare(b.agentId);
}

function* inGroups<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += READS_AT_A_TIME) yield items.slice(from, from + READS_AT_A_TIME);
}

/** Names in a folder; none when there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return [];
    throw error;
  }
}

import { join } from 'node:path';
import type { AgentRef } from '../protocol.ts';

/** Whose files are meant. Comes from workflow input, so every part is checked before it becomes a path. */
export type AgentPlace = Pick<AgentRef, 'runId' | 'agentId' | 'transcript'>;

const RUN_ID = /^[a-z0-9][a-z0-9-]{0,120}$/i;
const CHILD_AGENT_ID = /^[0-9a-f]{12}$/;
const OBJECT_HASH = /^[0-9a-f]{64}$/;
const STEM = /^(\d{4})\/(\d{2})\/(\d{2})\/rollout-\1-\2-\3T\d{2}-\d{2}-\d{2}-\d{3}Z-([^/]+)$/;
const CHILD_FILE = /^agent-([0-9a-f]{12})(?:\.meta\.json|\.jsonl)$/;

/** Stem of a new run's files below `transcripts/`: a folder per UTC day, then start time and run id. */
export function newTranscriptStem(runId: string, now: Date): string {
  assertRunId(runId);
  const time = now.toISOString();
  const stem = `${time.slice(0, 10).replaceAll('-', '/')}/rollout-${time.replace(/[:.]/g, '-')}-${runId}`;
  runIdOfStem(stem);
  return stem;
}

export function transcriptsRoot(home: string): string {
  return join(home, 'transcripts');
}

/** Folder of the effect journal, outside every workspace. */
export function journalRoot(home: string): string {
  return join(home, 'journal');
}

/** The agent's transcript: the root's beside the run folder, every descendant's flat in `subagents/`. */
export function transcriptFile(home: string, place: AgentPlace): string {
  assertPlace(place);
  if (place.agentId === place.runId) return rootTranscriptFile(home, place.transcript);
  return join(subagentsFolder(home, place.transcript), `agent-${place.agentId}.jsonl`);
}

/** The agent's `meta.json`. */
export function metaFile(home: string, place: AgentPlace): string {
  assertPlace(place);
  if (place.agentId === place.runId) return join(runFolder(home, place.transcript), 'meta.json');
  return join(subagentsFolder(home, place.transcript), `agent-${place.agentId}.meta.json`);
}

/** Transcript of the root agent of the run with this stem. */
export function rootTranscriptFile(home: string, stem: string): string {
  return `${runFolder(home, stem)}.jsonl`;
}

/** Folder of everything a run keeps beside its root transcript. */
export function runFolder(home: string, stem: string): string {
  runIdOfStem(stem);
  return join(transcriptsRoot(home), stem);
}

export function subagentsFolder(home: string, stem: string): string {
  return join(runFolder(home, stem), 'subagents');
}

export function objectFile(home: string, stem: string, hash: string): string {
  assertObjectHash(hash);
  return join(runFolder(home, stem), 'objects', hash);
}

/** Folder for results of an agent that are too long for the model; only this agent may read them. */
export function resultsFolder(home: string, place: AgentPlace): string {
  assertPlace(place);
  return join(runFolder(home, place.transcript), 'results', place.agentId);
}

/** Run id at the end of a stem; throws for anything that is not a stem. */
export function runIdOfStem(stem: string): string {
  const runId = STEM.exec(stem)?.[4];
  if (runId === undefined || !RUN_ID.test(runId)) {
    throw new Error(`${quoted(stem)} is not a transcript stem; expected YYYY/MM/DD/rollout-<time>-<run id>`);
  }
  return runId;
}

/** Agent id in the name of a file of `subagents/`; undefined for any other file. */
export function agentIdOfFile(name: string): string | undefined {
  return CHILD_FILE.exec(name)?.[1];
}

export function assertRunId(runId: string): void {
  if (RUN_ID.test(runId)) return;
  throw new Error(
    `${quoted(runId)} is not a run id; use 1 to 121 letters, digits and dashes, the first one not a dash`,
  );
}

function assertPlace(place: AgentPlace): void {
  assertRunId(place.runId);
  if (place.agentId !== place.runId && !CHILD_AGENT_ID.test(place.agentId)) {
    throw new Error(`${quoted(place.agentId)} is not an agent id; expected 12 hex digits, or the run id for the root`);
  }
  const owner = runIdOfStem(place.transcript);
  if (owner === place.runId) return;
  throw new Error(`Transcript ${quoted(place.transcript)} belongs to run ${owner}, not to run ${place.runId}`);
}

function assertObjectHash(hash: string): void {
  if (OBJECT_HASH.test(hash)) return;
  throw new Error(`${quoted(hash)} is not an object hash; expected 64 lower-case hex digits of sha256`);
}

/** Untrusted text made safe and short enough for an error message. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 160 ? `${text.slice(0, 160)}…` : text);
}

import type { AgentType } from '../agents/agent-type.ts';
import { storeInvalid } from '../failures.ts';
import type { ToolSchema } from '../model/model.ts';
import { narrow } from '../policy/narrow.ts';
import type { Policy } from '../policy/policy.ts';
import type { AgentObjects, AgentRef } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { RunFileError } from '../store/files.ts';
import { getObject } from '../store/objects.ts';
import { conversation } from '../store/chain.ts';
import type {
  AssistantMessageRecord,
  SessionMetaRecord,
  TranscriptRecord,
  UserMessageRecord,
} from '../store/records.ts';
import { RECORD_VERSION, positionOf } from '../store/records.ts';
import { recordOfTurn } from '../store/fork.ts';
import type { Transcript } from '../store/transcript.ts';
import { openCached } from '../store/transcript.ts';
import type { ActivityDeps } from './deps.ts';

/** An agent's files, opened: its transcript and what was stored once at its start. */
export interface AgentFiles {
  readonly ref: AgentRef;
  readonly transcript: Transcript;
  readonly meta: SessionMetaRecord;
  /** Narrowed by this worker's ceiling. */
  readonly policy: Policy;
}

export async function openAgent(deps: ActivityDeps, ref: AgentRef): Promise<AgentFiles> {
  const { transcript, meta } = await openRecords(deps, ref);
  const stored = await loadObject<Policy>(deps, ref, meta.objects.policy);
  return { ref, transcript, meta, policy: narrow(deps.ceiling, stored) };
}

/** For closing, which does nothing that a policy could forbid: the stored one may be what is missing. */
export async function openToClose(deps: ActivityDeps, ref: AgentRef): Promise<AgentFiles> {
  return { ref, ...(await openRecords(deps, ref)), policy: deps.ceiling };
}

async function openRecords(deps: ActivityDeps, ref: AgentRef): Promise<Pick<AgentFiles, 'transcript' | 'meta'>> {
  const transcript = await openCached(transcriptFile(deps.home, ref));
  const [meta] = transcript.records;
  if (meta?.type !== 'session_meta') {
    const what = transcript.bytes === 0 ? 'is empty' : 'is damaged: its first record is no session_meta';
    throw new RunFileError(`the transcript ${what} (${transcript.file})`);
  }
  if (meta.agentId !== ref.agentId || meta.runId !== ref.runId)
    throw new RunFileError(`the transcript is of agent ${meta.agentId} of run ${meta.runId} (${transcript.file})`);
  assertKnownVersion(transcript);
  return { transcript, meta };
}

/** A newer version may mean by its records what this one would not: it writes nothing between them. */
function assertKnownVersion({ file, records, skipped }: Transcript): void {
  if (skipped.newer === 0) return;
  const version = records.reduce((highest, record) => Math.max(highest, record.v), 0);
  if (version <= RECORD_VERSION) return;
  throw storeInvalid(
    `${file} was written by a newer errand (version ${version}, this one knows ${RECORD_VERSION}). ` +
      'Nothing was overwritten; go on with that version.',
  );
}

/** Parsed objects by hash: they never change, so every turn may share them. */
const parsedObjects = new Map<string, unknown>();
const MAX_PARSED_OBJECTS = 500;

/** A stored JSON object, its hash verified on first use. */
export async function loadObject<T>(deps: ActivityDeps, ref: AgentRef, hash: string): Promise<T> {
  const known = parsedObjects.get(hash);
  if (known !== undefined) return known as T;
  const value: unknown = JSON.parse((await getObject(deps.home, ref.transcript, hash)).toString('utf8'));
  if (parsedObjects.size >= MAX_PARSED_OBJECTS) parsedObjects.clear();
  parsedObjects.set(hash, value);
  return value as T;
}

export interface RenderedAgent {
  readonly systemPrompt: string;
  readonly tools: readonly ToolSchema[];
  readonly type: AgentType;
}

/** What is sent unchanged with every request of the agent: rendered once, so that the cached prefix is byte-stable. */
export async function loadRendered(deps: ActivityDeps, ref: AgentRef, objects: AgentObjects): Promise<RenderedAgent> {
  return {
    systemPrompt: await loadObject<string>(deps, ref, objects.systemPrompt),
    tools: await loadObject<readonly ToolSchema[]>(deps, ref, objects.toolSchemas),
    type: await loadObject<AgentType>(deps, ref, objects.agentType),
  };
}

/** The conversation as this agent's branch has it, whichever branch readers are shown. */
export function chainOf({ transcript, ref }: AgentFiles): readonly TranscriptRecord[] {
  return conversation(transcript.records, ref);
}

/** Names the branch that a record is in: a call belongs to its reply, also after a reset that kept the reply. */
export function refOf(ref: AgentRef, record: Pick<TranscriptRecord, 'id'>): AgentRef {
  const { epoch, branch } = positionOf(record.id);
  return { ...ref, epoch, branch };
}

/** The stored reply of a turn, if it was recorded in this agent's branch or in what the branch follows. */
export function replyOf(files: AgentFiles, turn: number): AssistantMessageRecord | undefined {
  const record = recordOfTurn(files.transcript, { ...files.ref, turn }, 'reply');
  return record?.type === 'message' && record.role === 'assistant' ? record : undefined;
}

/** The user message that opens a turn. */
export function userMessageOf(files: AgentFiles, turn: number): UserMessageRecord | undefined {
  const record = recordOfTurn(files.transcript, { ...files.ref, turn }, 'user');
  return record?.type === 'message' && record.role === 'user' ? record : undefined;
}

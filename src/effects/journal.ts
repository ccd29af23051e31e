import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createOnce, makeFolder, placeOnce, readStored, replaceWhole, STORED_VERSION } from '../jobs/durable-file.ts';
import type { ProcessIdentity } from '../process-identity.ts';
import type { AgentRef } from '../protocol.ts';
import type { ToolResult } from '../tools/tool.ts';

/** The attempt that acts on a call. */
export interface ClaimOwner {
  readonly workflowRunId: string;
  readonly activityId: string;
  readonly attempt: number;
  readonly process: ProcessIdentity;
  /** Unique per attempt, also within one process. */
  readonly nonce: string;
}

/** A file change that is about to be made; `result` is the answer once the file is found to have `postSha256`. */
export interface FileIntent {
  readonly path: string;
  readonly preSha256: string | null;
  readonly postSha256: string;
  readonly result: ToolResult;
}

/** What is kept of one call, in a folder of its own. Damaged files and those of a newer version throw. */
export interface CallJournal {
  readonly folder: string;
  /** The call's result, once it has one. */
  kept(): Promise<ToolResult | undefined>;
  /** Keeps a result; answers the one that was kept first. */
  keep(result: ToolResult): Promise<ToolResult>;
  /** The same for a call that only looked: after a power cut it may have to look again. */
  keepMemo(result: ToolResult): Promise<ToolResult>;
  /** Takes the call if nobody has it; else says who has. */
  claim(owner: ClaimOwner): Promise<{ readonly fresh: boolean; readonly previous?: ClaimOwner }>;
  /** Takes the call from another attempt; only after the server has said that this one is current. */
  takeOver(owner: ClaimOwner): Promise<void>;
  /** Whether the call is still this attempt's. */
  holds(owner: ClaimOwner): Promise<boolean>;
  readIntent(): Promise<FileIntent | undefined>;
  /** Replaces an earlier intent, which must not have been carried out. */
  writeIntent(intent: FileIntent): Promise<void>;
}

/** Folder of a call below ERRAND_HOME. */
export function callFolder(home: string, ref: AgentRef, callId: string): string {
  return join(agentFolder(home, ref), `${ref.epoch}-${safeName(ref.branch)}-${safeName(callId)}`);
}

/** Folder of all calls of an agent. */
export function agentFolder(home: string, { runId, agentId }: Pick<AgentRef, 'runId' | 'agentId'>): string {
  return join(home, 'journal', safeName(runId), safeName(agentId));
}

/** HOME and /tmp of an agent's commands; gone when the agent is closed. */
export function scratchFolder(home: string, ref: Pick<AgentRef, 'runId' | 'agentId'>): string {
  return join(agentFolder(home, ref), 'scratch');
}

/** Opens the journal of a call; makes nothing until something is kept. */
export function openCallJournal(folder: string): CallJournal {
  const file = (name: string) => join(folder, `${name}.json`);
  const readClaim = async () => (await readStored<Stored<ClaimOwner>>(file('claim')))?.value;
  const kept = async () => (await readStored<Stored<ToolResult>>(file('result')))?.value;
  return {
    folder,
    kept,
    keep: async (result) => {
      await makeFolder(folder);
      if (await createOnce(file('result'), stored(result))) return result;
      return (await kept()) ?? result;
    },
    keepMemo: async (result) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (await placeOnce(file('result'), stored(result))) return result;
      return (await kept()) ?? result;
    },
    claim: async (owner) => {
      await makeFolder(folder);
      if (await createOnce(file('claim'), stored(owner))) return { fresh: true };
      const previous = await readClaim();
      return { fresh: false, previous };
    },
    takeOver: (owner) => replaceWhole(file('claim'), stored(owner)),
    holds: async (owner) => (await readClaim())?.nonce === owner.nonce,
    readIntent: async () => (await readStored<Stored<FileIntent>>(file('intent')))?.value,
    writeIntent: (intent) => replaceWhole(file('intent'), stored(intent)),
  };
}

interface Stored<Value> {
  readonly v: number;
  readonly value: Value;
}

function stored<Value>(value: Value): string {
  const whole: Stored<Value> = { v: STORED_VERSION, value };
  return JSON.stringify(whole);
}

// All of these are errand's own ids; a name that is none must not lead out of the journal.
function safeName(name: string): string {
  if (!/^[\w.-]*$/.test(name) || name === '.' || name === '..') {
    throw new Error(`${JSON.stringify(name)} cannot be the name of a folder in the effect journal.`);
  }
  return name;
}

import type { AgentRef } from '../protocol.ts';
import type { AssistantMessageRecord } from '../store/records.ts';
import type { ReadSet, ToolFacts } from '../tools/tool.ts';
import { chainOf, refOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { keptResult } from './kept-result.ts';
import { unreadableOutcome } from './unreadable.ts';

/**
 * What this agent has seen of which file: sealed results in order, then what the turn at hand has kept so far. Never
 * inherited: it is a safety catch, and a parent's reading is not the child's having seen.
 */
export async function readSetOf(
  deps: ActivityDeps,
  ref: AgentRef,
  files: AgentFiles,
  reply: AssistantMessageRecord,
  beforeIndex: number,
): Promise<ReadSet> {
  const seen = new Map<string, { sha256: string; whole: boolean }>();
  for (const record of chainOf(files)) {
    if (record.type !== 'message' || record.role !== 'user') continue;
    for (const result of record.results ?? []) note(seen, result.facts);
  }
  for (const call of reply.calls.slice(0, beforeIndex))
    note(seen, (await keptResult(deps, refOf(ref, reply), call).catch(unknownInBranch(ref)))?.facts);
  return seen;
}

/** What a damaged result had read counts as not read. */
function unknownInBranch({ branch }: AgentRef): (error: unknown) => undefined {
  return (error) => {
    if (branch === '') throw error;
    unreadableOutcome(error);
    return undefined;
  };
}

function note(seen: Map<string, { sha256: string; whole: boolean }>, facts: ToolFacts | undefined): void {
  if (facts?.read) seen.set(facts.read.path, { sha256: facts.read.sha256, whole: facts.read.whole });
  if (facts?.wrote) seen.set(facts.wrote.path, { sha256: facts.wrote.postSha256, whole: true });
}

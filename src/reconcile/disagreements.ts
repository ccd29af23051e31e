import { AGENT_WORKFLOW } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import type { AgentPlace } from '../store/layout.ts';
import { listAgents, listRuns, type ListingProblem } from '../store/listing.ts';
import { metaFromRecords, readMeta } from '../store/meta.ts';
import { readTranscript } from '../store/read.ts';
import { GONE_EVENT } from '../store/records.ts';
import type { AgentMeta } from '../store/records.ts';
import { fateOf, type NamedServer } from './fate.ts';
import { toOpenAgent } from './open-agents.ts';

/** Something that two of meta file, transcript and Temporal say differently. */
export interface Disagreement {
  /** An agent's workflow id, or a file; control characters escaped. */
  readonly what: string;
  readonly problem: string;
  /** What to do about it. */
  readonly next: string;
}

export interface CompareOptions {
  readonly home: string;
  /** Missing: only the files are compared. */
  readonly server?: NamedServer;
  /** The home's task queue. */
  readonly queue: string;
  /** Newest runs that are looked at. Default 200. */
  readonly maxRuns?: number;
}

/** Compares the files of the newest runs with each other and with the server; changes nothing. */
export async function findDisagreements(options: CompareOptions): Promise<readonly Disagreement[]> {
  const { home, server, queue, maxRuns = 200 } = options;
  const openIds = server && (await openWorkflowIds(server, queue));
  const { runs, problems } = await listRuns(home, { limit: maxRuns });
  const found: Disagreement[] = problems.map(unreadable);
  const known = new Set<string>();
  for (const { transcript } of runs) {
    const listed = await listAgents(home, transcript);
    found.push(...listed.problems.map(unreadable));
    for (const agent of listed.agents) {
      known.add(agent.workflowId);
      found.push(...(await compareFiles(home, transcript, agent)));
      if (server && openIds) found.push(...(await compareServer({ home, transcript, agent, server, openIds })));
    }
  }
  return [...found, ...withoutFiles(openIds ?? new Map(), known)];
}

/** Files and server are written one after the other: what is younger than this may just be on its way. */
const SETTLED_AFTER_MS = 60_000;

/** Ids of the home's open agents with their start. */
async function openWorkflowIds({ client }: NamedServer, queue: string): Promise<Map<string, Date>> {
  const query = `TaskQueue = '${queue}' AND WorkflowType = '${AGENT_WORKFLOW}' AND ExecutionStatus = 'Running'`;
  const ids = new Map<string, Date>();
  for await (const { workflowId, startTime } of client.workflow.list({ query })) ids.set(workflowId, startTime);
  return ids;
}

async function compareFiles(home: string, transcript: string, agent: AgentMeta): Promise<readonly Disagreement[]> {
  const place = { ...agent, transcript };
  try {
    return await compareMeta(home, place, agent.workflowId);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [unreadable({ file: transcriptFile(home, place), reason })];
  }
}

async function compareMeta(home: string, place: AgentPlace, what: string): Promise<readonly Disagreement[]> {
  const { meta, records, skipped, tornBytes } = await readTranscript(transcriptFile(home, place));
  if (meta && (meta.agentId !== place.agentId || meta.runId !== place.runId))
    return [
      { what, problem: `its transcript is the one of agent ${meta.agentId} of run ${meta.runId}`, next: RESTORE },
    ];
  const derived = metaFromRecords(records);
  const damaged = Object.values(skipped).reduce((sum, count) => sum + count, 0);
  const found: Disagreement[] = [];
  const say = (problem: string, next: string) => found.push({ what, problem, next });
  const stored = await readMeta(home, place).catch(() => undefined);
  if (stored === undefined) say('its meta file is missing or damaged', REWRITE);
  else if (stored.status !== derived.status)
    say(`its meta file says ${stored.status}, its transcript ${derived.status}`, REWRITE);
  const lost = records.find((record) => record.type === 'event' && record.name === GONE_EVENT);
  if (lost) say('its transcript was lost while it ran; the one that is there only tells how it ended', RESTORE);
  if (damaged > 0) say(`${damaged} lines of its transcript cannot be read and are passed over`, KEEP);
  if (tornBytes > 0 && derived.endedAt !== null) say(`the last ${tornBytes} bytes of its transcript are torn`, KEEP);
  return found;
}

const REWRITE = 'errand doctor --clean writes the meta file again from the transcript';
const RESTORE = 'put the right file back if you have a copy of it; nothing else needs doing';
const KEEP = 'nothing needs doing; the rest of the transcript is whole';

interface Comparison {
  readonly home: string;
  readonly transcript: string;
  readonly agent: AgentMeta;
  readonly server: NamedServer;
  readonly openIds: ReadonlyMap<string, Date>;
}

async function compareServer({
  home,
  transcript,
  agent,
  server,
  openIds,
}: Comparison): Promise<readonly Disagreement[]> {
  const what = agent.workflowId;
  if (agent.endedAt !== null) {
    const isOpen = openIds.has(what) && Date.now() - Date.parse(agent.endedAt) > SETTLED_AFTER_MS;
    const problem = `its transcript ended as ${agent.status}, but its workflow is still open`;
    return isOpen ? [{ what, problem, next: 'look at it in the Temporal UI; errand cancel ends it' }] : [];
  }
  if (openIds.has(what)) return [];
  const [open] = await toOpenAgent(home, transcript, agent);
  if (!open) return [];
  const fate = await fateOf(server, open);
  if (fate.kind === 'open') return [];
  if (fate.kind === 'unknown')
    return [{ what, problem: `it has no ending, and this server cannot tell: ${fate.reason}`, next: ASK_OTHER }];
  const problem = fate.kind === 'closed' ? `its workflow closed as ${fate.status}` : 'the server no longer knows it';
  return [
    { what, problem: `it has no ending, but ${problem}`, next: 'a running worker ends it as lost within minutes' },
  ];
}

const ASK_OTHER = 'connect to the server it was started on, or leave it: only that server may call it lost';

function withoutFiles(openIds: ReadonlyMap<string, Date>, known: ReadonlySet<string>): readonly Disagreement[] {
  const unknown = [...openIds].filter(
    ([id, startTime]) => !known.has(id) && Date.now() - startTime.getTime() > SETTLED_AFTER_MS,
  );
  return unknown.map(([what]) => ({
    what,
    problem: 'its workflow is open, but it has no transcript here',
    next: 'it has not been taken up by a worker yet, or its files were moved; errand cancel ends it',
  }));
}

const UNOPENED =
  'leave it if it waits for a worker, put the transcript back if you have a copy; what a start that was cut short has ' +
  'left, errand doctor --clean removes an hour later, if it can ask the server';

function unreadable({ file, reason, isUnopened }: ListingProblem): Disagreement {
  if (isUnopened) return { what: file, problem: reason, next: UNOPENED };
  return { what: file, problem: reason, next: 'move the file away, or restore it; other runs are not affected' };
}

import { randomBytes, randomInt } from 'node:crypto';
import { rm } from 'node:fs/promises';
import {
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
} from '@temporalio/client';
import {
  AGENT_INPUT_VERSION,
  AGENT_WORKFLOW,
  taskQueue,
  TRANSCRIPT_MEMO,
  type AgentInput,
  type AgentObjects,
} from '../protocol.ts';
import type { Policy } from '../policy/policy.ts';
import { rootType } from '../agents/built-in.ts';
import { storeStartingObjects } from '../agents/starting-objects.ts';
import { homeId } from '../home.ts';
import { offeredTools } from '../policy/decide.ts';
import { listRuns } from '../store/listing.ts';
import { putObject } from '../store/objects.ts';
import { writeStartNote } from '../store/start-note.ts';
import { TOOL_NAMES } from '../tools/index.ts';
import { TASK_TOOL } from '../tools/task.ts';
import { newTranscriptStem, rootTranscriptFile, runFolder } from '../store/layout.ts';
import type { TemporalClient } from './connection.ts';
import { ensureSearchAttributes, rootAttributes } from './search-attributes.ts';
import { DuplicateRun, isRefusal } from './start-refused.ts';
import { findUnopened } from './unopened.ts';

/** A job: everything a person decided about a run. */
export interface RunSpec {
  readonly home: string;
  readonly runId: string;
  readonly prompt: string;
  /** Absolute real path. */
  readonly workspace: string;
  readonly model: string;
  /** Which server alone is asked for it (`modelServerOf`); missing: whatever the workers use. */
  readonly modelServer?: string;
  readonly policy: Policy;
  readonly outageMs: number;
  readonly historyEvents?: number;
  /** Hears what was left out, a line each. */
  readonly warn: (line: string) => void;
}

/** A run that the server has taken. */
export interface StartedRun {
  readonly runId: string;
  /** Stem of its files. */
  readonly stem: string;
  /** The root agent's transcript. */
  readonly file: string;
}

const MAX_SLUG_LENGTH = 40;
const DETAILS_TASK_BYTES = 2000;
const WORKFLOW_TASK_TIMEOUT_MS = 10_000;

/** `<words of the prompt>-<6 characters>`: readable in every list, and never the same twice. */
export function newRunId(prompt: string): string {
  const words = prompt
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase();
  const slug = words
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, MAX_SLUG_LENGTH)
    .replace(/-+$/, '');
  const suffix = Array.from({ length: 6 }, () => randomInt(36).toString(36)).join('');
  return `${slug === '' ? 'run' : slug}-${suffix}`;
}

/** Stores what the run needs and starts its workflow. Throws DuplicateRun; nothing is started, and left, then. */
export async function startRun(temporal: TemporalClient, spec: RunSpec): Promise<StartedRun> {
  const { home, runId } = spec;
  const stem = newTranscriptStem(runId, new Date());
  const run = { runId, stem, file: rootTranscriptFile(home, stem) };
  const forget = () => rm(runFolder(home, stem), { recursive: true, force: true });
  const prepared = await prepare(temporal, spec, stem).catch(async (error: unknown) => {
    await forget();
    throw error;
  });
  try {
    await startWorkflow(temporal, spec, prepared);
    return run;
  } catch (error) {
    const isTaken = error instanceof WorkflowExecutionAlreadyStartedError;
    const there = isTaken ? await findUnopened(temporal.client, runId) : undefined;
    // An answer that was lost on its way, asked for again: what stands in the way is this very start.
    if (there?.stem === stem) return run;
    if (isTaken || isRefusal(error)) await forget();
    throw isTaken ? new DuplicateRun(runId, there?.queue !== taskQueue(homeId(home))) : error;
  }
}

/** What the run needs on disk; first of all whose it is, for the case that its start is cut short. */
async function prepare({ client, namespace }: TemporalClient, spec: RunSpec, stem: string): Promise<Prepared> {
  const { clusterId } = await client.workflowService.getClusterInfo({});
  await writeStartNote(spec.home, stem, { clusterId: clusterId ?? '', namespace, pid: process.pid });
  const objects = await storeObjects(spec, stem);
  return { stem, objects, searchAttributes: await ensureSearchAttributes(client, namespace, spec.warn) };
}

async function startWorkflow({ client }: TemporalClient, spec: RunSpec, prepared: Prepared): Promise<void> {
  const input = toInput(spec, prepared);
  const { stem, searchAttributes } = prepared;
  await client.workflow.start(AGENT_WORKFLOW, {
    args: [input],
    workflowId: spec.runId,
    taskQueue: taskQueue(homeId(spec.home)),
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.FAIL,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    staticSummary: `${rootType.name}: ${input.description}`.slice(0, 120),
    staticDetails: details(spec, runFolder(spec.home, stem)),
    memo: { workspace: spec.workspace, model: spec.model, [TRANSCRIPT_MEMO]: stem },
    ...(searchAttributes && { typedSearchAttributes: rootAttributes(rootType.name) }),
  });
}

/** Throws DuplicateRun for an id that the files know: the server forgets closed runs after a while, they do not. */
export async function assertNewRun(home: string, runId: string): Promise<void> {
  const { runs } = await listRuns(home);
  if (runs.some((run) => run.runId === runId)) throw new DuplicateRun(runId);
}

async function storeObjects({ home, policy, model, workspace }: RunSpec, stem: string): Promise<AgentObjects> {
  const tools = offeredTools(policy, TOOL_NAMES);
  const agent = { agentType: rootType, policy, tools, model, depth: 0, canSpawn: tools.includes(TASK_TOOL) };
  return storeStartingObjects(agent, workspace, (data) => putObject(home, stem, data));
}

interface Prepared {
  readonly stem: string;
  readonly objects: AgentObjects;
  readonly searchAttributes: boolean;
}

function toInput(spec: RunSpec, { stem, objects, searchAttributes }: Prepared): AgentInput {
  return {
    v: AGENT_INPUT_VERSION,
    runId: spec.runId,
    agentId: spec.runId,
    transcript: stem,
    depth: 0,
    hops: spec.policy.hops,
    epoch: 0,
    objects,
    agentType: rootType.name,
    description: label(spec.prompt),
    limits: {
      maxTurns: spec.policy.limits.maxTurns,
      timeoutMs: spec.policy.limits.timeoutMs,
      outageMs: spec.outageMs,
      ...(spec.historyEvents !== undefined && { historyEvents: spec.historyEvents }),
    },
    model: spec.model,
    prompt: spec.prompt,
    workspace: spec.workspace,
    trace: { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') },
    searchAttributes,
    ...(spec.modelServer !== undefined && { modelServer: spec.modelServer }),
  };
}

/** The first words of the prompt, on one line. */
function label(prompt: string): string {
  const words = prompt.trim().replace(/\s+/g, ' ').split(' ').slice(0, 8).join(' ');
  return words.length <= 80 ? words : `${[...words].slice(0, 79).join('')}…`;
}

function details({ prompt, policy, model, workspace }: RunSpec, folder: string): string {
  const rows: readonly (readonly [string, string])[] = [
    ['Workspace', workspace],
    ['Model', model],
    ['Sandbox', policy.sandbox],
    ['Roots', policy.roots.join(', ')],
    ['Network', policy.network ? 'yes' : 'no'],
    ['Approvals', policy.approvals],
    ['Hops', String(policy.hops)],
    ['Max turns', String(policy.limits.maxTurns)],
    ['Transcripts', folder],
  ];
  const table = rows.map(([name, value]) => `| ${name} | ${value.replaceAll('|', '\\|')} |`).join('\n');
  return `${headOf(prompt)}\n\n| | |\n| --- | --- |\n${table}`;
}

function headOf(prompt: string): string {
  const bytes = Buffer.from(prompt.trim());
  if (bytes.length <= DETAILS_TASK_BYTES) return prompt.trim();
  return `${bytes
    .subarray(0, DETAILS_TASK_BYTES)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')}…`;
}

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Context } from '@temporalio/activity';
import { checkChild } from '../agents/child.ts';
import { crashPoint } from '../crash-points.ts';
import { agentFolder } from '../effects/journal.ts';
import { agentRejected } from '../failures.ts';
import { makeFolder } from '../jobs/durable-file.ts';
import type { ToolSchema } from '../model/model.ts';
import type { Policy } from '../policy/policy.ts';
import { workflowId } from '../protocol.ts';
import type { AgentInput, AgentRef, OpenInput, Opened } from '../protocol.ts';
import { transcriptFile } from '../store/layout.ts';
import { metaFromRecords, writeMeta } from '../store/meta.ts';
import { recordId } from '../store/records.ts';
import type { SessionMetaRecord } from '../store/records.ts';
import { toWellFormed } from '../store/text.ts';
import { openCached } from '../store/transcript.ts';
import type { Transcript } from '../store/transcript.ts';
import { ERRAND_VERSION } from '../version.ts';
import { loadObject, loadRendered, openAgent, userMessageOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { assertNotEnded } from './ended.ts';
import { createFence } from './fence.ts';
import type { Fence } from './fence.ts';
import { isUnforked } from './fork.ts';
import { withHeartbeat } from './heartbeat.ts';

/**
 * Writes the first records, before anything else happens, and refuses an agent that breaks a rule. Workflow input is
 * untrusted: a child's policy, depth and prompt are checked against its parent's transcript.
 */
export async function openTranscript(deps: ActivityDeps, open: OpenInput): Promise<Opened> {
  return withHeartbeat(deps, async (pulse) => {
    const { files, tools } = await writeOpening(deps, open, createFence(deps, pulse));
    await assertNotEnded(deps, files);
    return { tools: tools.map(({ name }) => name) };
  });
}

/** The work of `openTranscript`, for an activity that beats already. Append-once: an agent that is opened again finds it. */
export async function writeOpening(
  deps: ActivityDeps,
  { input, branch }: OpenInput,
  fence: Fence,
): Promise<{ readonly files: AgentFiles; readonly tools: readonly ToolSchema[] }> {
  const ref: AgentRef = {
    runId: input.runId,
    agentId: input.agentId,
    transcript: input.transcript,
    epoch: input.epoch,
    branch,
  };
  if (input.parent) crashPoint('child.after');
  const prompt = input.parent ? await promptFromParent(deps, ref, input) : rootPrompt(input);
  await assertWorkspace(input.workspace);
  const { tools } = await loadRendered(deps, ref, input.objects);
  await fence.awake();
  // From now on its absence tells that somebody took the journal away.
  await makeFolder(agentFolder(deps.home, ref));
  const transcript = await openCached(transcriptFile(deps.home, ref), { create: true });
  await writeHeader(deps, ref, input, transcript, prompt);
  await transcript.append({
    // Also the prompt is written once: a branch begins after it.
    id: recordId({ ...ref, branch: '', turn: 1 }, 'user'),
    type: 'message',
    role: 'user',
    turn: 1,
    content: [{ type: 'text', text: toWellFormed(prompt) }],
  });
  const files = await openAgent(deps, ref);
  if (isUnforked(files)) await fence.pass(files, 1);
  await transcript.sync();
  // The meta file is replaced, not appended to: a late attempt would bring back the start of an agent that has ended.
  await fence.awake();
  await writeMeta(deps.home, ref, metaFromRecords(transcript.records));
  return { files, tools };
}

/** The first record, which says who the agent is; refuses another agent's under the same id. */
export async function writeHeader(
  deps: ActivityDeps,
  ref: AgentRef,
  input: AgentInput,
  transcript: Transcript,
  prompt: string,
): Promise<void> {
  const promptSha256 = createHash('sha256').update(prompt).digest('hex');
  const { record } = await transcript.append({
    // One header a transcript: a reset begins a branch of the conversation, not another agent.
    id: recordId({ ...ref, branch: '', turn: 0 }, 'session_meta'),
    type: 'session_meta',
    errandVersion: ERRAND_VERSION,
    runId: input.runId,
    agentId: input.agentId,
    epoch: input.epoch,
    branch: '',
    ...(input.parent && { parentAgent: input.parent }),
    depth: input.depth,
    hops: input.hops ?? 0,
    agentType: input.agentType,
    description: input.description,
    workspace: input.workspace,
    model: input.model,
    objects: input.objects,
    limits: input.limits,
    promptSha256,
    clusterId: deps.clusterId,
    namespace: deps.namespace,
    workflowId: workflowId(input.runId, input.agentId),
    workflowRunId: Context.current().info.workflowExecution?.runId ?? '',
    trace: input.trace,
    ...(input.modelServer !== undefined && { modelServer: input.modelServer }),
  });
  assertSameAgent(input, record as SessionMetaRecord, promptSha256);
}

/** An id names one job: the same one again is a retry, another one under its name is refused. */
function assertSameAgent(input: AgentInput, there: SessionMetaRecord, promptSha256: string): void {
  if (there.promptSha256 !== promptSha256) {
    throw agentRejected(`agent ${input.agentId} exists with another prompt; choose another --id`);
  }
  if (there.epoch !== input.epoch) {
    throw agentRejected(`agent ${input.agentId} exists with epoch ${there.epoch}, not ${input.epoch}`);
  }
}

function rootPrompt(input: AgentInput): string {
  if (input.depth !== 0 || input.agentId !== input.runId) {
    throw agentRejected(`agent ${input.agentId} names no parent but is not the root of run ${input.runId}`);
  }
  if (input.prompt === undefined || input.prompt.trim() === '') throw agentRejected('the prompt is empty');
  return input.prompt;
}

/** The third refusal: what the workflow was told must be what the parent's transcript says. */
async function promptFromParent(deps: ActivityDeps, ref: AgentRef, input: AgentInput): Promise<string> {
  const parentId = input.parent?.agentId ?? '';
  const parent = await openAgent(deps, { ...ref, agentId: parentId, branch: input.parent?.branch ?? '' });
  const found = parent.transcript.records.flatMap((record) =>
    record.type === 'message' && record.role === 'assistant'
      ? record.calls.map((call) => ({ call, content: record.content, turn: record.turn }))
      : [],
  );
  const match = found.find(({ call }) => call.task?.agentId === input.agentId && call.callId === input.parent?.callId);
  if (!match)
    throw agentRejected(`agent ${input.agentId} was not asked for by ${parentId}, call ${input.parent?.callId}`);
  if (!existsSync(transcriptFile(deps.home, ref)) && userMessageOf(parent, match.turn + 1))
    throw agentRejected(`call ${input.parent?.callId} of ${parentId} has been answered without agent ${input.agentId}`);
  const problem = checkChild({
    parent: {
      policy: await loadObject<Policy>(deps, ref, parent.meta.objects.policy),
      hops: parent.meta.hops,
      depth: parent.meta.depth,
    },
    child: {
      policy: await loadObject<Policy>(deps, ref, input.objects.policy),
      hops: input.hops ?? 0,
      depth: input.depth,
    },
  });
  if (problem !== undefined) throw agentRejected(problem);
  const block = match.content.find((candidate) => candidate.id === match.call.toolUseId);
  return (block?.input as { prompt: string }).prompt;
}

async function assertWorkspace(workspace: string): Promise<void> {
  const stats = await stat(workspace).catch(() => undefined);
  if (!stats?.isDirectory()) throw agentRejected(`workspace ${workspace} is not a folder on this worker's host`);
}

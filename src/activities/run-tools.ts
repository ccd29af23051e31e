import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Context } from '@temporalio/activity';
import type { ClaimOwner } from '../effects/journal.ts';
import { agentFolder, callFolder, openCallJournal, scratchFolder } from '../effects/journal.ts';
import { StaleAttemptError, runCall } from '../effects/run-call.ts';
import { attemptStale, inputInvalid } from '../failures.ts';
import { cancelJob } from '../jobs/cancel-job.ts';
import { ownIdentity } from '../process-identity.ts';
import { StoredFileError } from '../jobs/durable-file.ts';
import type { RunToolsInput } from '../protocol.ts';
import { demoException } from '../sandbox/demo-exception.ts';
import { planSandbox } from '../sandbox/plan.ts';
import type { SandboxPlan } from '../sandbox/plan.ts';
import { resultsFolder } from '../store/layout.ts';
import type { AssistantMessageRecord, RecordedCall } from '../store/records.ts';
import { toolByName } from '../tools/index.ts';
import { parseToolInput } from '../tools/tool-input.ts';
import type { Tool, ToolContext } from '../tools/tool.ts';
import { openAgent, refOf, replyOf, userMessageOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { sealedResult } from './earlier-result.ts';
import { assertNotEnded } from './ended.ts';
import { assertRoom } from './disk-room.ts';
import type { AttemptGuard } from './attempt.ts';
import { createFence, isCurrentAttempt } from './fence.ts';
import { isUnforked } from './fork.ts';
import { isCancelRequested, withHeartbeat } from './heartbeat.ts';
import { readSetOf } from './read-set.ts';
import { spill } from './spill.ts';

/** Reads of one turn that run at the same time. */
const PARALLEL_READS = 4;

/** Runs calls of one turn; their results stay in the effect journal until the seal. Inputs come from the transcript. */
export async function runTools(deps: ActivityDeps, input: RunToolsInput): Promise<void> {
  await withHeartbeat(deps, async (pulse) => {
    const files = await openAgent(deps, input.ref);
    await assertNotEnded(deps, files);
    // What the model was told of this turn stands: nothing of it is done any more.
    if (userMessageOf(files, input.turn + 1)) return;
    const fence = createFence(deps, pulse);
    if (isUnforked(files)) await fence.pass(files, input.turn + 1);
    const reply = replyOf(files, input.turn);
    if (!reply) throw inputInvalid(`agent ${input.ref.agentId} has no reply of turn ${input.turn} in its transcript`);
    const waiting = [...input.calls];
    const runNext = async (): Promise<void> => {
      for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
        await runOne(deps, files, reply, index, { pulse, fence });
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_READS }, runNext));
  });
}

async function runOne(
  deps: ActivityDeps,
  files: AgentFiles,
  reply: AssistantMessageRecord,
  index: number,
  guard: AttemptGuard,
): Promise<void> {
  const call = reply.calls[index];
  const tool = call && toolByName(call.name);
  if (!tool)
    throw inputInvalid(`turn ${reply.turn} of agent ${files.ref.agentId} has no call ${index} that can be run`);
  if (isResultElsewhere(files, call)) return;
  const folder = callFolder(deps.home, refOf(files.ref, reply), call.callId);
  const toolInput = inputOf(tool, reply, call);
  if (tool.effect !== 'none' && isJournalGone(deps, files.ref)) {
    await guard.fence.awake();
    await openCallJournal(folder).keep(JOURNAL_GONE);
    return;
  }
  try {
    await runCall({
      tool,
      input: toolInput,
      context: await contextOf(deps, files, { tool, reply, index }, guard),
      journal: openCallJournal(folder),
      owner: thisAttempt(),
      mayAct: () => isCurrentAttempt(deps.client),
      confirmAwake: guard.fence.awake,
      checkStore: () => assertRoom(deps.home),
      forbiddenPaths: [deps.home],
      ceilings: deps.commandCeilings,
      planSandbox: () => planFor(deps, files, tool.effect === 'job' ? tool.command(toolInput) : ''),
    });
  } catch (error) {
    // Only a cancellation ends a job; a lost attempt or a worker's end leaves it to the next one.
    if (isCancelRequested()) await cancelJob(folder);
    if (error instanceof StaleAttemptError) throw attemptStale(error.message);
    if (!isUnreadableInBranch(files.ref, error)) throw error;
  }
}

/** The seal tells the model. Only of the journal's files: trouble in the workspace is the tool's to tell. */
function isUnreadableInBranch({ branch }: AgentFiles['ref'], error: unknown): boolean {
  return branch !== '' && error instanceof StoredFileError && !error.isNewer;
}

const JOURNAL_GONE = {
  text: 'interrupted; effects unknown: the record of what this call had done was deleted. Look at what is there first.',
  isError: true,
};

/** An earlier attempt may have acted, and the folder that would say so, made when the agent opened, was deleted. */
function isJournalGone(deps: ActivityDeps, ref: AgentFiles['ref']): boolean {
  return Context.current().info.attempt > 1 && !existsSync(agentFolder(deps.home, ref));
}

/** After a reset that kept the reply: its results may have been sealed in the branch that was left. */
function isResultElsewhere({ ref, transcript }: AgentFiles, call: RecordedCall): boolean {
  return ref.branch !== '' && sealedResult(transcript.records, call) !== undefined;
}

async function planFor(deps: ActivityDeps, { ref, policy }: AgentFiles, command: string): Promise<SandboxPlan> {
  const { sandbox: mode, roots, network } = policy;
  const readable = [resultsFolder(deps.home, ref)];
  const plan = await planSandbox(deps.sandbox, {
    mode,
    roots,
    network,
    scratch: scratchFolder(deps.home, ref),
    readable,
    maxProcesses: deps.commandCeilings.processes,
  });
  return plan.kind === 'refused' ? (demoException(deps.sandbox, { roots, command }) ?? plan) : plan;
}

function inputOf(tool: Tool, reply: AssistantMessageRecord, call: RecordedCall): unknown {
  const block = reply.content.find((candidate) => candidate.id === call.toolUseId);
  const parsed = parseToolInput(tool, block?.input);
  if ('problem' in parsed) throw inputInvalid(`call ${call.callId}: ${parsed.problem}`);
  return parsed.input;
}

interface CallOfReply {
  readonly tool: Tool;
  readonly reply: AssistantMessageRecord;
  readonly index: number;
}

async function contextOf(
  deps: ActivityDeps,
  files: AgentFiles,
  { tool, reply, index }: CallOfReply,
  { pulse, fence }: AttemptGuard,
): Promise<ToolContext> {
  const { ref, meta, policy } = files;
  const callId = reply.calls[index]?.callId ?? '';
  return {
    runId: ref.runId,
    agentId: ref.agentId,
    callId,
    workspace: meta.workspace,
    policy,
    readable: [resultsFolder(deps.home, ref)],
    reads: await readSetOf(deps, ref, files, reply, index),
    // A job goes on without its worker, so there is nothing to wait for when the worker ends.
    signal: tool.effect === 'job' ? AbortSignal.any([pulse.signal, deps.shutdown]) : pulse.signal,
    progress: pulse.progress,
    spill: async (text) => {
      await fence.awake();
      return spill(deps, ref, callId, text);
    },
  };
}

function thisAttempt(): ClaimOwner {
  const { workflowExecution, activityId, attempt } = Context.current().info;
  return {
    workflowRunId: workflowExecution?.runId ?? '',
    activityId,
    attempt,
    process: ownIdentity(),
    nonce: randomUUID(),
  };
}

import { rm } from 'node:fs/promises';
import type { AgentRef, AgentResult, CloseInput, Closing } from '../protocol.ts';
import { endJobsOf } from '../jobs/cancel-job.ts';
import { StoredFileError } from '../jobs/durable-file.ts';
import { agentFolder, scratchFolder } from '../effects/journal.ts';
import { finalText } from '../model/last-text.ts';
import { headOf } from '../store/text.ts';
import { chainOf, openToClose } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { sendLostCancel } from './ended.ts';
import { endWithoutFiles } from './end-without-files.ts';
import { createFence } from './fence.ts';
import type { Fence } from './fence.ts';
import { withHeartbeat } from './heartbeat.ts';
import { writeOpening } from './open-transcript.ts';
import { hasSteeredTurn } from './reply-outcome.ts';
import { sealTurn } from './seal.ts';
import { endOf, writeEnd } from './terminal-record.ts';

const PREVIEW_BYTES = 200;

/**
 * Ends an agent, however it ended: ends its open jobs, seals what its last turn gave, writes the terminal record. Runs
 * again without harm; the first terminal record stands. An agent that is only over in a history which lost the message
 * that came in at its end goes on with the turn that the message began.
 */
export async function closeAgent(deps: ActivityDeps, input: CloseInput): Promise<Closing> {
  return withHeartbeat(deps, async (pulse) => {
    const fence = createFence(deps, pulse);
    try {
      return await closeWithin(deps, input, fence);
    } catch (error) {
      return endWithoutFiles(deps, { close: input, error, awake: fence.awake });
    }
  });
}

async function closeWithin(deps: ActivityDeps, input: CloseInput, fence: Fence): Promise<Closing> {
  // Commands are ended first of all, but not those of an agent that goes on: it is further than its history knows, or it
  // was reset while this attempt slept.
  if (await goesOn(deps, input)) return { goesOn: true };
  await endJobs(deps, input.ref, fence);
  await fence.awake();
  await rm(scratchFolder(deps.home, input.ref), { recursive: true, force: true });
  if (input.unopened) await writeOpening(deps, { input: input.unopened, branch: input.ref.branch }, fence);
  const files = await openToClose(deps, input.ref);
  const there = endOf(files.transcript, input.ref);
  if (there) await sendLostCancel(deps, there);
  else {
    await fence.pass(files, input.turn + 1);
    await seal(deps, files, input);
  }
  // Also where the record is there already: the attempt that wrote it may have died before the meta file.
  const ending = { status: input.status, turns: input.turn, error: input.error, confirm: fence.awake };
  return toResult(files, input.ref, await writeEnd(deps, input.ref, ending));
}

/** What is wrong with its files is met again where it is told. */
async function goesOn(deps: ActivityDeps, { ref, status, turn, unopened }: CloseInput): Promise<boolean> {
  if (status !== 'completed' || unopened) return false;
  const files = await openToClose(deps, ref).catch(() => undefined);
  return files !== undefined && !endOf(files.transcript, ref) && hasSteeredTurn(files, turn + 1);
}

/** A job whose files this version cannot read ends by its own deadline; the agent has to end all the same. */
async function endJobs(deps: ActivityDeps, ref: AgentRef, { awake }: Fence): Promise<void> {
  try {
    await endJobsOf(agentFolder(deps.home, ref), awake);
  } catch (error) {
    if (!(error instanceof StoredFileError)) throw error;
    deps.log.error({ agentId: ref.agentId, error: error.message }, 'a job could not be ended');
  }
}

/** Kept results that this version cannot read stay where they are, for one that can: the agent ends without them. */
async function seal(deps: ActivityDeps, files: AgentFiles, { turn, answers, steering }: CloseInput): Promise<void> {
  try {
    await sealTurn(deps, files, { turn: turn + 1, answers, steering });
  } catch (error) {
    if (!(error instanceof StoredFileError)) throw error;
    deps.log.error({ agentId: files.ref.agentId, error: error.message }, 'the last turn could not be sealed');
  }
}

function toResult(files: AgentFiles, ref: AgentRef, end: NonNullable<ReturnType<typeof endOf>>): AgentResult {
  const { text } = finalText(chainOf(files));
  return {
    agentId: ref.agentId,
    status: end.status,
    turns: end.turns,
    preview: headOf(text, PREVIEW_BYTES),
    textBytes: Buffer.byteLength(text),
    usage: end.usage,
    ...(end.error !== undefined && { error: end.error }),
  };
}

import { rm } from 'node:fs/promises';
import type { AgentRef, AgentResult, CloseInput } from '../protocol.ts';
import { endJobsOf } from '../jobs/cancel-job.ts';
import { agentFolder, scratchFolder } from '../effects/journal.ts';
import { finalText } from '../model/last-text.ts';
import { headOf } from '../store/text.ts';
import { openAgent } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';
import { assertMayWrite } from './fence.ts';
import { withHeartbeat } from './heartbeat.ts';
import { openTranscript } from './open-transcript.ts';
import { sealTurn } from './seal.ts';
import { endOf, writeEnd } from './terminal-record.ts';

const PREVIEW_BYTES = 200;

/**
 * Ends an agent, however it ended: ends its open jobs, seals what its last turn gave, writes the terminal record. Runs
 * again without harm; the first terminal record stands.
 */
export async function closeAgent(deps: ActivityDeps, input: CloseInput): Promise<AgentResult> {
  return withHeartbeat(async () => {
    await endJobsOf(agentFolder(deps.home, input.ref));
    await rm(scratchFolder(deps.home, input.ref), { recursive: true, force: true });
    if (input.unopened) await openTranscript(deps, { input: input.unopened, branch: input.ref.branch });
    const files = await openAgent(deps, input.ref);
    const there = endOf(files.transcript, input.ref);
    if (!there) {
      await assertMayWrite(deps, files, input.turn + 1);
      await sealTurn(deps, files, { turn: input.turn + 1, answers: input.answers, steering: input.steering });
    }
    const end =
      there ?? (await writeEnd(deps, input.ref, { status: input.status, turns: input.turn, error: input.error }));
    return toResult(files, input.ref, end);
  });
}

function toResult(files: AgentFiles, ref: AgentRef, end: NonNullable<ReturnType<typeof endOf>>): AgentResult {
  const { text } = finalText(files.transcript.records);
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

import { crashPoint } from '../crash-points.ts';
import { runAlone } from '../effects/running-calls.ts';
import type { AssistantMessageRecord } from '../store/records.ts';
import type { CallModelInput, Reply } from '../protocol.ts';
import { NO_USAGE } from '../protocol.ts';
import { loadRendered, openAgent, replyOf } from './agent-files.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import { ask } from './ask.ts';
import { settlePaid } from './attempt.ts';
import type { AttemptGuard, PaidReply } from './attempt.ts';
import type { ActivityDeps } from './deps.ts';
import { assertRoom } from './disk-room.ts';
import { assertNotEnded } from './ended.ts';
import { createFence } from './fence.ts';
import { withHeartbeat } from './heartbeat.ts';
import { recordReply } from './record-reply.ts';
import { forgetReply, questionOf } from './replies-in-hand.ts';
import { toReply } from './reply-outcome.ts';
import { assertOwnModelServer } from './own-model-server.ts';
import { makeRoom } from './room.ts';
import { sealTurn } from './seal.ts';
import { unsaidSteering } from './unsaid-steering.ts';
import { usageOfTurn } from './usage-of-turn.ts';

/**
 * One turn's question: seals the turn before, records the attempt, asks the model, records the reply, and only then
 * answers. A reply that is already recorded is never asked for again, whichever attempt comes.
 */
export async function callModel(deps: ActivityDeps, input: CallModelInput): Promise<Reply> {
  return withHeartbeat(deps, async (pulse) => {
    const files = await openAgent(deps, input.ref);
    await assertNotEnded(deps, files);
    const recorded = replyOf(files, input.turn);
    if (recorded) return answer(files, input, recorded);
    assertOwnModelServer(deps, files);

    // Another attempt may still be at this very question, in this process: it is waited for. So it is when the server was
    // set back, or when the machine slept.
    const guard = { pulse, fence: createFence(deps, pulse) };
    const record = await runAlone(questionOf(files, input.turn), pulse.signal, () =>
      askAndRecord(deps, files, input, guard),
    );
    return answer(files, input, record);
  });
}

async function askAndRecord(
  deps: ActivityDeps,
  files: AgentFiles,
  input: CallModelInput,
  guard: AttemptGuard,
): Promise<AssistantMessageRecord> {
  const { turn } = input;
  await guard.fence.pass(files, turn);
  await assertRoom(deps.home);
  const sealed = await sealTurn(deps, files, input);
  const rendered = await loadRendered(deps, files.ref, files.meta.objects);
  await makeRoom(deps, files, rendered, turn);
  const isLast = (sealed?.last ?? input.last) !== undefined;
  const paid = await ask(deps, files, rendered, { turn, isLast }, guard);
  const record = await keepReply(deps, files, rendered, { turn, paid, guard }).catch(async (error: unknown) => {
    await settlePaid(files, paid);
    throw error;
  });
  forgetReply(files, turn);
  if (record.calls.some(({ task }) => task)) crashPoint('child.before');
  return record;
}

interface PaidTurn {
  readonly turn: number;
  readonly paid: PaidReply;
  readonly guard: AttemptGuard;
}

/** The question took long: an attempt that came later may have its own answer recorded, or be about to. */
async function keepReply(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  { turn, paid, guard }: PaidTurn,
): Promise<AssistantMessageRecord> {
  await files.transcript.refresh();
  const faster = replyOf(files, turn);
  if (faster) {
    await settlePaid(files, paid);
    return faster;
  }
  await guard.fence.passAgain(files, turn);
  return recordReply(deps, files, rendered, turn, paid);
}

function answer(files: AgentFiles, { steering }: CallModelInput, record: AssistantMessageRecord): Reply {
  const unsaid = unsaidSteering(files, steering).map(({ id }) => id);
  const usage = usageOfTurn(files, record.turn) ?? NO_USAGE;
  return { ...toReply(files, record), usage, ...(unsaid.length > 0 && { unsaid }) };
}

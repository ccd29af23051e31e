import { crashPoint } from '../crash-points.ts';
import type { AssistantMessageRecord } from '../store/records.ts';
import type { CallModelInput, Reply } from '../protocol.ts';
import { NO_USAGE } from '../protocol.ts';
import { loadRendered, openAgent, replyOf } from './agent-files.ts';
import type { AgentFiles } from './agent-files.ts';
import { ask } from './ask.ts';
import type { ActivityDeps } from './deps.ts';
import { assertRoom } from './disk-room.ts';
import { assertNotEnded } from './ended.ts';
import { createFence } from './fence.ts';
import { withHeartbeat } from './heartbeat.ts';
import { recordReply } from './record-reply.ts';
import { toReply } from './reply-outcome.ts';
import { makeRoom } from './room.ts';
import { sealTurn } from './seal.ts';
import { unsaidSteering } from './unsaid-steering.ts';
import { usageOfTurn } from './usage-of-turn.ts';

/**
 * One turn's question: seals the turn before, records the attempt, asks the model, records the reply, and only then
 * answers. A reply that is already recorded is never asked for again, whichever attempt comes.
 */
export async function callModel(deps: ActivityDeps, input: CallModelInput): Promise<Reply> {
  return withHeartbeat(async (pulse) => {
    const files = await openAgent(deps, input.ref);
    await assertNotEnded(deps, files);
    const recorded = replyOf(files, input.turn);
    if (recorded) return answer(files, input, recorded);

    const fence = createFence(deps, pulse);
    await fence.pass(files, input.turn);
    await assertRoom(deps.home);
    const sealed = await sealTurn(deps, files, input);
    const rendered = await loadRendered(deps, files.ref, files.meta.objects);
    await makeRoom(deps, files, rendered, input.turn);
    const question = { turn: input.turn, isLast: sealed?.last !== undefined };
    const reply = await ask(deps, files, rendered, question, { pulse, fence });
    // The question took long: an attempt that came later may have its own answer recorded, or be about to.
    await files.transcript.refresh();
    const faster = replyOf(files, input.turn);
    if (faster) return answer(files, input, faster);
    await fence.pass(files, input.turn);
    const record = await recordReply(deps, files, rendered, input.turn, reply);
    await files.transcript.sync();
    if (record.calls.some(({ task }) => task)) crashPoint('child.before');
    return answer(files, input, record);
  });
}

function answer(files: AgentFiles, { steering }: CallModelInput, record: AssistantMessageRecord): Reply {
  const unsaid = unsaidSteering(files, steering).map(({ id }) => id);
  const usage = usageOfTurn(files, record.turn) ?? NO_USAGE;
  return { ...toReply(files, record), usage, ...(unsaid.length > 0 && { unsaid }) };
}

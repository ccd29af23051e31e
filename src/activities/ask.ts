import { Context } from '@temporalio/activity';
import { stubbedIds } from '../model/context.ts';
import { toActivityFailure } from '../model/failure.ts';
import { ModelError } from '../model/model.ts';
import type { ModelRequest } from '../model/model.ts';
import { toWireMessages } from '../store/messages.ts';
import { chainOf } from './agent-files.ts';
import type { AgentFiles, RenderedAgent } from './agent-files.ts';
import { attemptOnce } from './attempt.ts';
import type { AttemptGuard, PaidReply } from './attempt.ts';
import type { ActivityDeps } from './deps.ts';
import { makeMoreRoom } from './room.ts';

export interface Question {
  readonly turn: number;
  /** Only text may come back. */
  readonly isLast: boolean;
}

/**
 * Asks the model; a failure carries its own retry decision. Two refusals have a cure that is tried once: thinking that
 * the server no longer takes is left out, and a conversation that is too long loses its older tool results.
 */
export async function ask(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  question: Question,
  guard: AttemptGuard,
): Promise<PaidReply> {
  const send = async (withoutThinking: boolean) =>
    attemptOnce(
      deps,
      files,
      question.turn,
      await buildRequest(deps, files, rendered, question, withoutThinking),
      guard,
    );
  try {
    return await send(false).catch(async (error: unknown) => {
      if (!(error instanceof ModelError)) throw error;
      if (error.kind === 'invalid_thinking') return send(true);
      if (error.kind === 'context_exceeded' && (await makeMoreRoom(files, rendered, question.turn))) return send(false);
      throw error;
    });
  } catch (error) {
    throw error instanceof ModelError ? toActivityFailure(error, Context.current().info.attempt) : error;
  }
}

async function buildRequest(
  deps: ActivityDeps,
  files: AgentFiles,
  rendered: RenderedAgent,
  question: Question,
  withoutThinking: boolean,
): Promise<ModelRequest> {
  const records = chainOf(files);
  const { model } = files.meta;
  return {
    model,
    system: rendered.systemPrompt,
    tools: rendered.tools,
    messages: toWireMessages(records, { stubbed: stubbedIds(records), model, withoutThinking }),
    maxTokens: await deps.model.maxOutput(model),
    toolChoice: question.isLast ? 'none' : 'auto',
  };
}

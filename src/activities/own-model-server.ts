import { Context } from '@temporalio/activity';
import { modelOtherServer } from '../failures.ts';
import { retryDelay } from '../model/retry-after.ts';
import type { AgentFiles } from './agent-files.ts';
import type { ActivityDeps } from './deps.ts';

/** Somebody who has just brought the right workers back should see the run go on. */
const LONGEST_WAIT_MS = 15_000;

/**
 * A run asks the model server it was started with and no other one, whatever the workers were given since: another one
 * would get its conversation, and answer for it. Before anything is recorded or sent; waited out like an outage.
 */
export function assertOwnModelServer(deps: ActivityDeps, { meta }: AgentFiles): void {
  if (meta.modelServer === undefined || meta.modelServer === deps.modelServer) return;
  const waitMs = Math.min(retryDelay(Context.current().info.attempt, undefined), LONGEST_WAIT_MS);
  throw modelOtherServer(meta.modelServer, deps.modelServer, waitMs);
}

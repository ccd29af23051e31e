import { join } from 'node:path';
import type { AgentRef } from '../protocol.ts';
import { writeAtomic } from '../store/files.ts';
import { resultsFolder } from '../store/layout.ts';
import type { ActivityDeps } from './deps.ts';

/** Keeps a text too long for the model where the agent can read it. One name a call: a second attempt replaces its own. */
export async function spill(deps: ActivityDeps, ref: AgentRef, callId: string, text: string | Buffer): Promise<string> {
  const branch = ref.branch === '' ? '' : `-${ref.branch}`;
  const file = join(resultsFolder(deps.home, ref), `${ref.epoch}${branch}-${callId}.txt`);
  await writeAtomic(file, text);
  return file;
}

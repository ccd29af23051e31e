import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { policyBytes } from '../policy/canonical.ts';
import type { Policy } from '../policy/policy.ts';
import type { AgentObjects } from '../protocol.ts';
import { toolSchemas } from '../tools/index.ts';
import type { AgentType } from './agent-type.ts';
import { renderSystemPrompt } from './system-prompt.ts';

/** Notes of the project's own people, the first that is there; cut where they would crowd out the work. */
const NOTES_FILES = ['AGENTS.md', 'CLAUDE.md'];
const MAX_NOTES_BYTES = 32 * 1024;

/** An agent that is about to start. */
export interface StartingAgent {
  readonly agentType: AgentType;
  readonly policy: Policy;
  /** Names of the tools it is offered, in order. */
  readonly tools: readonly string[];
  readonly model: string;
  readonly depth: number;
  readonly canSpawn: boolean;
}

/**
 * Renders what an agent works with for its whole life and stores each part once: the prompt prefix stays the same bytes
 * over restarts and deploys, and a deploy changes no running agent.
 */
export async function storeStartingObjects(
  agent: StartingAgent,
  workspace: string,
  put: (data: string) => Promise<string>,
): Promise<AgentObjects> {
  const systemPrompt = renderSystemPrompt({
    type: agent.agentType,
    workspace,
    platform: process.platform,
    date: new Date().toISOString().slice(0, 10),
    isGit: (await stat(join(workspace, '.git')).catch(() => undefined)) !== undefined,
    depth: agent.depth,
    canSpawn: agent.canSpawn,
    model: agent.model,
    tools: agent.tools,
    network: agent.policy.network,
    unconfined: agent.policy.sandbox === 'full-access',
    projectNotes: await readNotes(workspace),
  });
  const [policy, agentType, prompt, schemas] = await Promise.all([
    put(policyBytes(agent.policy)),
    put(JSON.stringify(agent.agentType)),
    put(JSON.stringify(systemPrompt)),
    put(JSON.stringify(toolSchemas(agent.tools))),
  ]);
  return { policy, agentType, systemPrompt: prompt, toolSchemas: schemas };
}

async function readNotes(workspace: string): Promise<string | undefined> {
  for (const name of NOTES_FILES) {
    const file = join(workspace, name);
    const stats = await stat(file).catch(() => undefined);
    if (!stats?.isFile()) continue;
    const bytes = await readFile(file);
    const text = bytes.subarray(0, MAX_NOTES_BYTES).toString('utf8');
    return bytes.length > MAX_NOTES_BYTES ? `${text}\n[cut; the rest is in ${name}]` : text;
  }
  return undefined;
}

import { constants } from 'node:fs';
import { readdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { RunFileError, appendLine, createFile, hasCode, openRegular } from './files.ts';
import { agentIdOfFile, runFolder, subagentsFolder } from './layout.ts';
import { join } from 'node:path';

/** A run's list of agents is short; a file beyond this is not one. */
const MAX_LEDGER_BYTES = 16 * 1024 * 1024;

/** Version of the ledger's lines. */
const LEDGER_VERSION = 1;

/**
 * Claims one of the places for sub-agents that a run has, for good. Atomic without a lock: the claim is a line appended
 * to the run ledger, and only the first `maxAgents` distinct ones in file order count. Claiming again gives the same
 * answer. Nothing waits, so nothing deadlocks.
 */
export async function claimSlot(home: string, stem: string, agentId: string, maxAgents: number): Promise<boolean> {
  const file = join(runFolder(home, stem), 'ledger.jsonl');
  await createFile(file);
  const { handle } = await openRegular(file, constants.O_RDWR | constants.O_APPEND);
  try {
    const before = await readSpawned(handle);
    // Children without a line are there when the ledger was deleted or damaged: they keep their places.
    const missing = [...(await childrenOf(home, stem)), agentId].filter((id) => !before.includes(id));
    if (!before.includes(agentId)) await appendSpawned(handle, [...new Set(missing)]);
    const rank = (await readSpawned(handle)).indexOf(agentId);
    return rank >= 0 && rank < maxAgents;
  } finally {
    await handle.close();
  }
}

async function appendSpawned(handle: FileHandle, agentIds: readonly string[]): Promise<void> {
  const at = new Date().toISOString();
  const lines = agentIds.map((agentId) => JSON.stringify({ v: LEDGER_VERSION, type: 'spawn', agentId, at }));
  // A torn line of a writer that died is left as a line of its own.
  const isWhole = await appendLine(handle, Buffer.from(`\n${lines.join('\n')}\n`));
  // The kernel takes a part and tells no code; half a claim must not look like a place that somebody else got.
  if (!isWhole) throw Object.assign(new Error('the run ledger took only a part of a claim'), { code: 'ENOSPC' });
  await handle.datasync();
}

async function childrenOf(home: string, stem: string): Promise<readonly string[]> {
  const names = await readdir(subagentsFolder(home, stem)).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  });
  return names.flatMap((name) => agentIdOfFile(name) ?? []);
}

async function readSpawned(handle: FileHandle): Promise<string[]> {
  const { size } = await handle.stat();
  if (size > MAX_LEDGER_BYTES)
    throw new RunFileError(`the run ledger has ${size} bytes; at most ${MAX_LEDGER_BYTES} were expected`);
  const bytes = Buffer.alloc(size);
  await handle.read(bytes, 0, size, 0);
  const spawned = new Set(bytes.toString('utf8').split('\n').flatMap(spawnedIn));
  return [...spawned];
}

function spawnedIn(line: string): string[] {
  try {
    const entry = JSON.parse(line) as { type?: unknown; agentId?: unknown } | null;
    return entry?.type === 'spawn' && typeof entry.agentId === 'string' ? [entry.agentId] : [];
  } catch {
    // Blank, or torn by a crash: its claim was never answered.
    return [];
  }
}

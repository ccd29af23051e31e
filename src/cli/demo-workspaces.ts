import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { homePaths } from '../home.ts';
import { findRun } from '../store/find-run.ts';
import { hasCode, writeAtomic } from '../store/files.ts';
import { loadMeta } from '../store/meta.ts';

/** A folder that a demo of this home works in. */
interface DemoWorkspace {
  readonly workspace: string;
  readonly runId: string;
}

const PREFIX = 'errand-demo-';

/**
 * A new folder for a demo's run, outside the home, since the tools may not touch that. The folders of this home's earlier
 * demos go first, unless their run is still under way: the last one always stays, to be looked at.
 */
export async function createDemoWorkspace(home: string, runId: string): Promise<string> {
  const kept: DemoWorkspace[] = [];
  for (const earlier of await readList(home)) {
    if (await isOver(home, earlier.runId)) await removeWorkspace(earlier);
    else kept.push(earlier);
  }
  const workspace = await mkdtemp(join(tmpdir(), PREFIX));
  await writeAtomic(listFile(home), `${JSON.stringify([...kept, { workspace, runId }])}\n`);
  return workspace;
}

/** A run without files may be about to begin: two demos can start at the same time. */
async function isOver(home: string, runId: string): Promise<boolean> {
  try {
    const { transcript } = await findRun(home, runId);
    return (await loadMeta(home, { runId, agentId: runId, transcript })).status !== 'running';
  } catch {
    return false; // Without files, or with unreadable ones: nobody can say that it is over.
  }
}

/** Only what a demo can have made: whatever the list says, nothing else is ever removed. */
async function removeWorkspace({ workspace }: DemoWorkspace): Promise<void> {
  if (!basename(workspace).startsWith(PREFIX) || dirname(workspace) !== tmpdir()) return;
  const isItself = await realpath(workspace).then(
    (real) => basename(real) === basename(workspace),
    () => false,
  );
  if (isItself) await rm(workspace, { recursive: true, force: true });
}

async function readList(home: string): Promise<readonly DemoWorkspace[]> {
  try {
    const list = JSON.parse(await readFile(listFile(home), 'utf8')) as unknown;
    return Array.isArray(list) ? list.filter(isDemoWorkspace) : [];
  } catch (error) {
    if (hasCode(error, 'ENOENT') || error instanceof SyntaxError) return [];
    throw error;
  }
}

function isDemoWorkspace(value: unknown): value is DemoWorkspace {
  if (typeof value !== 'object' || value === null) return false;
  const { workspace, runId } = value as Partial<Record<keyof DemoWorkspace, unknown>>;
  return typeof workspace === 'string' && typeof runId === 'string';
}

function listFile(home: string): string {
  return join(homePaths(home).server, 'demo-workspaces.json');
}

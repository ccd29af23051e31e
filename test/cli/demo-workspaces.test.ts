import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDemoWorkspace } from '../../src/cli/demo-workspaces.ts';
import { RecordedRun } from './recorded-run.ts';

let home: string;
const made: string[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'errand-home-'));
});
afterEach(() => {
  for (const folder of [home, ...made.splice(0)]) rmSync(folder, { recursive: true, force: true });
});

async function create(runId: string): Promise<string> {
  const workspace = await createDemoWorkspace(home, runId);
  made.push(workspace);
  return workspace;
}

function record(runId: string, status?: string): void {
  const run = new RecordedRun(home, runId);
  run.start();
  if (status !== undefined) run.end(status, 1);
}

describe('folders of demos', () => {
  it('the one of a run that has ended goes with the next demo; those of others stay', async () => {
    const [ended, running, unopened] = [await create('ended'), await create('running'), await create('unopened')];
    record('ended', 'completed');
    record('running');
    const last = await create('last');
    expect([ended, running, unopened, last].map((folder) => existsSync(folder))).toEqual([false, true, true, true]);
    expect(JSON.parse(readFileSync(join(home, 'server/demo-workspaces.json'), 'utf8'))).toEqual([
      { workspace: running, runId: 'running' },
      { workspace: unopened, runId: 'unopened' },
      { workspace: last, runId: 'last' },
    ]);
  });

  it('nothing else is removed, whatever the list says', async () => {
    await create('ended');
    record('ended', 'completed');
    const other = mkdtempSync(join(tmpdir(), 'not-a-demo-'));
    const elsewhere = join(other, 'errand-demo-x');
    mkdirSync(elsewhere);
    const link = join(tmpdir(), `errand-demo-link-${process.pid}`);
    symlinkSync(other, link);
    made.push(other, link);
    const list = [other, elsewhere, link, home, `${home}/../errand-demo-x/..`].map((workspace) => ({
      workspace,
      runId: 'ended',
    }));
    writeFileSync(join(home, 'server/demo-workspaces.json'), JSON.stringify(list));
    await create('next');
    expect([other, elsewhere, link, home].map((folder) => existsSync(folder))).toEqual([true, true, true, true]);
  });
});

import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newRunId, startRun } from '../../src/client.ts';
import { homePaths } from '../../src/home.ts';
import { rootPolicy } from '../../src/policy/defaults.ts';
import { newTranscriptStem, runFolder } from '../../src/store/layout.ts';
import { listRuns } from '../../src/store/listing.ts';
import { commandLine, type Ended } from '../helpers/command-line.ts';
import { createHarness } from '../helpers/harness.ts';
import type { Harness, Run } from '../helpers/harness.ts';

const LONG_AGO = Date.now() / 1000 - 7200;
/** Above every limit of process ids. */
const NO_PROCESS = 2 ** 31 - 1;

let mine: Harness;
let theirs: Harness;
/** A run of `mine` that no worker has taken. */
let waiting: Run;

beforeAll(async () => {
  mine = await createHarness({ workers: 0 });
  theirs = await createHarness({ workers: 0 });
});

afterAll(async () => {
  await errand('down');
  await Promise.all([mine.close(), theirs.close()]);
}, 60_000);

describe('a start that was refused', () => {
  it('because another home has the id leaves nothing behind', async () => {
    const { runId } = await theirs.run('hi');
    const { code, err } = await errand('run', '--detach', '--id', runId, 'hello');
    expect(err).toContain(`There is a run ${runId} already on this Temporal server, started from another home`);
    expect(code).toBe(5);
    expect(existsSync(join(homePaths(mine.home).snapshots, runId))).toBe(false);
    expect(await listRuns(mine.home)).toEqual({ runs: [], problems: [] });
  }, 60_000);

  it('because the server says no leaves nothing behind', async () => {
    const { connection } = mine.client;
    const elsewhere = {
      ...mine.temporal,
      client: new Client({ connection, namespace: 'nowhere' }),
      namespace: 'nowhere',
    };
    const { home, workspace } = mine;
    const policy = rootPolicy({ workspace, models: ['sim-1'], approvals: 'deny' });
    const job = { home, workspace, prompt: 'hi', model: 'sim-1', policy, outageMs: 1000, warn: () => undefined };
    await expect(startRun(elsewhere, { ...job, runId: newRunId('hi') })).rejects.toThrow();
    expect(await listRuns(mine.home)).toEqual({ runs: [], problems: [] });
  });
});

describe('a start that was cut short', () => {
  beforeAll(async () => {
    waiting = await mine.run('hi');
    await age(waiting.stem);
  });

  it('is removed by doctor --clean an hour later, with its snapshot; a run that waits for a worker is not', async () => {
    const stem = await cutShort();
    const snapshot = join(homePaths(mine.home).snapshots, 'cut-short');
    await mkdir(snapshot, { recursive: true });
    expect((await errand('doctor', '--clean')).out).toMatch(/removed: start "[^"]*-cut-short": /);
    expect([existsSync(runFolder(mine.home, stem)), existsSync(snapshot)]).toEqual([false, false]);
    expect(existsSync(join(runFolder(mine.home, waiting.stem), 'objects'))).toBe(true);
  }, 60_000);

  it.each([
    ['it is of another server', { clusterId: 'another' }],
    ['whoever starts it still lives', { pid: process.pid }],
    ['there is more in it than a start makes', { file: 'meta.json' }],
    ['it has no note, as an earlier version left it', { clusterId: undefined }],
    ['it is younger than an hour', { isYoung: true }],
  ])(
    'is left alone when %s',
    async (_, what) => {
      const stem = await cutShort(what);
      expect((await errand('doctor', '--clean')).out).not.toContain('removed: start');
      expect(existsSync(runFolder(mine.home, stem))).toBe(true);
    },
    60_000,
  );
});

interface Different {
  readonly clusterId?: string;
  readonly pid?: number;
  readonly file?: string;
  readonly isYoung?: boolean;
}

/** What a client has left that was killed before the server had heard of the run: as a start makes it, under another id. */
async function cutShort({ file, isYoung, ...note }: Different = {}): Promise<string> {
  const stem = newTranscriptStem('cut-short', new Date());
  const folder = runFolder(mine.home, stem);
  await cp(runFolder(mine.home, waiting.stem), folder, { recursive: true });
  const own = JSON.parse(await readFile(join(folder, 'start.json'), 'utf8')) as object;
  await writeFile(join(folder, 'start.json'), JSON.stringify({ ...own, pid: NO_PROCESS, ...note }));
  if (file !== undefined) await writeFile(join(folder, file), '{}');
  if (!isYoung) await age(stem);
  return stem;
}

async function age(stem: string): Promise<void> {
  await utimes(runFolder(mine.home, stem), LONG_AGO, LONG_AGO);
}

function errand(...args: string[]): Promise<Ended> {
  return commandLine(args, mine.environment, mine.workspace);
}

import { existsSync } from 'node:fs';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentFolder, scratchFolder } from '../../src/effects/journal.ts';
import { homePaths } from '../../src/home.ts';
import { claimJob } from '../../src/jobs/job-folder.ts';
import { DEFAULT_CAPS } from '../../src/jobs/start-or-attach.ts';
import { cleanLeftovers, findLeftovers } from '../../src/reconcile/leftovers.ts';
import { metaFile, rootTranscriptFile } from '../../src/store/layout.ts';
import { readMeta, writeMeta } from '../../src/store/meta.ts';
import { ROOT, STEM, end, freshFolder, meta, putFile, session, toText, user } from '../store/fixtures.ts';

const ended = toText([session(), user({}), end()]);
const running = toText([session(), user({})]);

describe('findLeftovers', () => {
  it('finds nothing in an empty home', async () => {
    expect(await findLeftovers(freshFolder())).toEqual([]);
  });

  it('lists job and scratch of an agent that has ended, and cleaning ends and removes them', async () => {
    const home = await homeWith(ended, meta());
    const found = await findLeftovers(home);
    expect(found.map(({ kind }) => kind)).toEqual(['job', 'scratch']);
    expect((await cleanLeftovers(home, found)).filter(({ problem }) => problem !== undefined)).toEqual([]);
    expect(existsSync(scratchFolder(home, ROOT))).toBe(false);
    expect(await findLeftovers(home)).toEqual([]);
  });

  it('leaves an agent alone that runs, and one that no transcript knows', async () => {
    const home = await homeWith(running, meta({ status: 'running', endedAt: null }));
    await mkdir(scratchFolder(home, { runId: 'unknown-run', agentId: 'unknown-run' }), { recursive: true });
    expect(await findLeftovers(home)).toEqual([]);
  });

  it('goes by the transcript where the meta file is older, and cleaning writes the meta file again', async () => {
    const home = await homeWith(ended, meta({ status: 'running', endedAt: null }));
    const found = await findLeftovers(home);
    expect(found.map(({ kind }) => kind)).toEqual(['job', 'scratch', 'meta']);
    await cleanLeftovers(home, found);
    expect((await readMeta(home, ROOT)).status).toBe('completed');
  });

  it('lists unfinished writes once they are an hour old, and nothing that belongs to a command', async () => {
    const home = await homeWith(running, meta({ status: 'running', endedAt: null }));
    const old = join(homePaths(home).transcripts, '.meta.json.0123456789ab.tmp');
    const fresh = join(homePaths(home).transcripts, '.meta.json.ba9876543210.tmp');
    const foreign = join(scratchFolder(home, ROOT), '.meta.json.0123456789ab.tmp');
    for (const file of [old, fresh, foreign]) await writeFile(file, '');
    const twoHoursAgo = Date.now() / 1000 - 7200;
    for (const file of [old, foreign]) await utimes(file, twoHoursAgo, twoHoursAgo);
    expect((await findLeftovers(home)).map(({ path }) => path)).toEqual([old]);
  });

  it('lists the socket of a supervisor that is gone', async () => {
    const home = freshFolder();
    await mkdir(homePaths(home).server, { recursive: true });
    await writeFile(join(homePaths(home).server, 'control.sock'), '');
    const found = await findLeftovers(home);
    expect(found.map(({ kind }) => kind)).toEqual(['socket']);
    await cleanLeftovers(home, found);
    expect(await findLeftovers(home)).toEqual([]);
  });

  it('says what could not be removed and goes on', async () => {
    const home = freshFolder();
    const [one, two] = [join(home, 'one'), join(home, 'two')];
    await writeFile(two, '');
    const job = { kind: 'job' as const, path: one, note: 'a job whose spec is missing' };
    await mkdir(join(one, 'job'), { recursive: true });
    const cleaned = await cleanLeftovers(home, [job, { kind: 'temporary', path: two, note: 'a file' }]);
    expect(cleaned.map(({ problem }) => problem?.includes('spec.json is missing'))).toEqual([true, undefined]);
    expect(existsSync(two)).toBe(false);
  });
});

/** A home with one root agent that left a claimed job and a scratch folder. */
async function homeWith(transcript: string, stored: ReturnType<typeof meta>): Promise<string> {
  const home = freshFolder();
  await putFile(rootTranscriptFile(home, STEM), transcript);
  await writeMeta(home, ROOT, stored);
  expect(existsSync(metaFile(home, ROOT))).toBe(true);
  const sandbox = { kind: 'none' as const, env: {} };
  const job = { command: 'true', cwd: home, timeoutMs: 1000, sandbox, caps: DEFAULT_CAPS };
  await claimJob(join(agentFolder(home, ROOT), '0--t1.0'), job);
  await mkdir(scratchFolder(home, ROOT));
  return home;
}

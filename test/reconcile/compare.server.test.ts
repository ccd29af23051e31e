import { randomUUID } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { connect } from '../../src/client.ts';
import type { TemporalClient } from '../../src/client.ts';
import { loadConfig } from '../../src/config.ts';
import { AGENT_WORKFLOW } from '../../src/protocol.ts';
import { findDisagreements } from '../../src/reconcile/disagreements.ts';
import { nameServer } from '../../src/reconcile/fate.ts';
import type { NamedServer } from '../../src/reconcile/fate.ts';
import { findLostAgents } from '../../src/reconcile/lost-agents.ts';
import { RECENT_RUNS } from '../../src/reconcile/open-agents.ts';
import { newTranscriptStem, rootTranscriptFile, transcriptFile } from '../../src/store/layout.ts';
import { listRuns } from '../../src/store/listing.ts';
import { metaFromRecords, writeMeta } from '../../src/store/meta.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';
import { end, freshFolder, putFile, session, toRecords, toText, user } from '../store/fixtures.ts';

const CHILD = 'abcdef012345';

let temporal: TemporalClient;
let server: NamedServer;

beforeAll(async () => {
  temporal = await connect(loadConfig({ env: { TEMPORAL_ADDRESS: inject('temporalAddress') } }).temporal);
  server = await nameServer(temporal.client, temporal.namespace);
  expect(server.clusterId).not.toBe('');
});

afterAll(() => temporal.close());

describe('promise 6: an agent is lost', () => {
  it('when this server has terminated its workflow', async () => {
    const { home, runId } = await startedHome();
    expect(await lostIn(home)).toEqual([]);
    await temporal.client.workflow.getHandle(runId).terminate();
    expect(await lostIn(home)).toEqual([[runId, 'terminated']]);
  });

  it('when this server should know its workflow and does not', async () => {
    const { home, runId } = await homeWithRun();
    expect(await lostIn(home)).toEqual([[runId, 'the server no longer knows its workflow']]);
  });

  it('but not when it is older than what this server keeps', async () => {
    const { home, file } = await homeWithRun();
    await utimes(file, 0, 0);
    expect(await lostIn(home)).toEqual([]);
  });

  it('but not when another server or namespace has it', async () => {
    const { home } = await homeWithRun({ clusterId: 'another' });
    expect(await lostIn(home)).toEqual([]);
    const elsewhere = await homeWithRun({ namespace: 'another' });
    expect(await lostIn(elsewhere.home)).toEqual([]);
  });

  it('but not a child that is missing while its parent runs: a server set back in time starts it again', async () => {
    const { home, runId, stem } = await startedHome();
    await addChild(home, runId, stem);
    expect(await lostIn(home)).toEqual([]);
    await temporal.client.workflow.getHandle(runId).terminate();
    expect(await lostIn(home)).toEqual([[runId, 'terminated']]);
  });
});

describe('findDisagreements', () => {
  it('says nothing of a run that is as its files say, and of one that has ended', async () => {
    const { home } = await startedHome();
    expect(await problemsIn(home)).toEqual([]);
    const over = await homeWithRun({}, [end()]);
    expect(await problemsIn(over.home)).toEqual([]);
  });

  it('names what a worker will end as lost, and what this server cannot tell', async () => {
    const { home, runId } = await homeWithRun();
    expect(await problemsIn(home)).toEqual([[runId, 'it has no ending, but the server no longer knows it']]);
    const other = await homeWithRun({ clusterId: 'another' });
    expect(await problemsIn(other.home)).toEqual([
      [
        other.runId,
        'it has no ending, and this server cannot tell: it was started on another server (namespace default)',
      ],
    ]);
  });

  it('names a workflow that is open although its transcript has ended', async () => {
    const { home, runId } = await startedHome([end()]);
    expect(await problemsIn(home)).toEqual([
      [runId, 'its transcript ended as completed, but its workflow is still open'],
    ]);
  });

  it('names a meta file that is older than its transcript, also without a server', async () => {
    const { home, runId, stem } = await homeWithRun({}, [end()]);
    const records = toRecords(draftsOf(runId, {}));
    await writeMeta(home, { runId, agentId: runId, transcript: stem }, metaFromRecords(records));
    const found = await findDisagreements({ home, queue: 'none' });
    expect(found.map(({ what, problem }) => [what, problem])).toEqual([
      [runId, 'its meta file says running, its transcript completed'],
    ]);
  });

  it('names a file that is no transcript and goes on with the rest', async () => {
    const { home } = await homeWithRun({}, [end()]);
    const stem = newTranscriptStem('broken-run', new Date());
    await putFile(rootTranscriptFile(home, stem), 'not a record\n');
    expect((await problemsIn(home)).map(([, problem]) => problem)).toEqual(['the first line is not JSON']);
  });
});

type Session = Partial<Extract<RecordDraft, { type: 'session_meta' }>>;

/** A home with one root that has no terminal record, unless `more` has one. */
async function homeWithRun(header: Session = {}, more: readonly RecordDraft[] = [], runId = `lost-${randomUUID()}`) {
  const home = freshFolder();
  const stem = newTranscriptStem(runId, new Date());
  const file = rootTranscriptFile(home, stem);
  const own = more.map((record) => ({ ...record, id: record.id.replace(/^[^:]*/, runId) }));
  const drafts = [...draftsOf(runId, header), ...own];
  await putFile(file, toText(drafts));
  await writeMeta(home, { runId, agentId: runId, transcript: stem }, metaFromRecords(toRecords(drafts)));
  return { home, runId, stem, file };
}

/** The same with an open workflow that no worker takes up. */
async function startedHome(more: readonly RecordDraft[] = []) {
  const started = await homeWithRun({}, more);
  const { runId: workflowId } = started;
  await temporal.client.workflow.start(AGENT_WORKFLOW, { workflowId, taskQueue: `queue-of-${workflowId}`, args: [] });
  return started;
}

async function addChild(home: string, runId: string, stem: string): Promise<void> {
  const place = { runId, agentId: CHILD, transcript: stem };
  const where = { runId, agentId: CHILD };
  const { clusterId } = server;
  const header = { ...session(where), clusterId, workflowId: `${runId}/${CHILD}` };
  const drafts = [header, user(where)];
  await putFile(transcriptFile(home, place), toText(drafts));
  await writeMeta(home, place, metaFromRecords(toRecords(drafts)));
}

function draftsOf(runId: string, header: Session): RecordDraft[] {
  const where = { runId, agentId: runId };
  const { clusterId } = server;
  return [{ ...(session(where) as Session), clusterId, workflowId: runId, ...header } as RecordDraft, user(where)];
}

async function lostIn(home: string) {
  const lost = await findLostAgents(home, server, RECENT_RUNS);
  return lost.map(({ workflowId, reason }) => [workflowId, reason]);
}

async function problemsIn(home: string) {
  const [run] = (await listRuns(home)).runs;
  const found = await findDisagreements({ home, server, queue: `queue-of-${run?.runId}` });
  return found.map(({ what, problem }) => [what, problem]);
}

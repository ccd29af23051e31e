import { describe, expect, it } from 'vitest';
import { openAgents } from '../../src/reconcile/open-agents.ts';
import { metaFile, rootTranscriptFile } from '../../src/store/layout.ts';
import { ROOT, STEM, freshFolder, meta, putFile, session, toText, user } from '../store/fixtures.ts';

const EVERY_RUN = { maxRuns: 10 };

describe('openAgents', () => {
  it.each([
    ['its own', session(), [ROOT.agentId]],
    ['that of another run', { ...session(), runId: 'another-run', agentId: 'another-run' }, []],
  ])('asks about an agent whose transcript is %s', async (_, first, asked) => {
    const home = freshFolder();
    await putFile(rootTranscriptFile(home, STEM), toText([first, user({})]));
    await putFile(metaFile(home, ROOT), JSON.stringify(meta({ status: 'running', endedAt: null })));
    const found = await openAgents(home, EVERY_RUN);
    expect(found.map(({ place }) => place.agentId)).toEqual(asked);
  });
});

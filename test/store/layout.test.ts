import { isAbsolute, join, relative, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  journalRoot,
  metaFile,
  newTranscriptStem,
  objectFile,
  resultsFolder,
  runFolder,
  runIdOfStem,
  transcriptFile,
  transcriptsRoot,
} from '../../src/store/layout.ts';
import { CHILD, CHILD_ID, ROOT, RUN_ID, STARTED, STEM } from './fixtures.ts';

describe('where files are', () => {
  it('names a run after its UTC day, start and id', () => {
    expect(newTranscriptStem(RUN_ID, STARTED)).toBe(`2026/11/30/rollout-2026-11-30T17-49-36-000Z-${RUN_ID}`);
    expect(runIdOfStem(STEM)).toBe(RUN_ID);
  });

  it.each([
    [transcriptFile('/home', ROOT), `${STEM}.jsonl`],
    [transcriptFile('/home', CHILD), `${STEM}/subagents/agent-${CHILD_ID}.jsonl`],
    [metaFile('/home', ROOT), `${STEM}/meta.json`],
    [metaFile('/home', CHILD), `${STEM}/subagents/agent-${CHILD_ID}.meta.json`],
    [objectFile('/home', STEM, 'a'.repeat(64)), `${STEM}/objects/${'a'.repeat(64)}`],
    [resultsFolder('/home', CHILD), `${STEM}/results/${CHILD_ID}`],
  ])('%s', (file, expected) => {
    expect(file).toBe(join('/home/transcripts', expected));
  });

  it('keeps the journal outside the transcripts', () => {
    expect(journalRoot('/home')).toBe('/home/journal');
  });
});

describe('workflow input cannot climb out', () => {
  it.each(['', '..', '../x', 'a/b', 'a\nb', '-a', 'a'.repeat(122), 'ä', 'a\0', 'a.b'])(
    'run id %j is refused',
    (runId) => {
      expect(() => newTranscriptStem(runId, STARTED)).toThrow(/not a run id/);
      expect(() => transcriptFile('/home', { ...ROOT, runId, agentId: runId })).toThrow(/not a run id/);
    },
  );

  it.each(['', '..', 'abc', CHILD_ID.toUpperCase() + 'F', `${CHILD_ID}/`, `${CHILD_ID}\n`])(
    'agent id %j is refused',
    (agentId) => {
      expect(() => transcriptFile('/home', { ...ROOT, agentId })).toThrow(/not an agent id/);
      expect(() => metaFile('/home', { ...ROOT, agentId })).toThrow(/not an agent id/);
    },
  );

  it.each(['', `/${STEM}`, `../${STEM}`, `${STEM}/x`, STEM.replace('2026/11', '2026/12'), `${STEM}\n`])(
    'stem %j is refused',
    (stem) => {
      expect(() => runFolder('/home', stem)).toThrow(/not a transcript stem/);
    },
  );

  it("another run's stem is refused", () => {
    expect(() => transcriptFile('/home', { ...ROOT, runId: 'other', agentId: 'other' })).toThrow(
      `belongs to run ${RUN_ID}, not to run other`,
    );
  });

  it.each(['', '..', 'A'.repeat(64), 'a'.repeat(63)])('object hash %j is refused', (hash) => {
    expect(() => objectFile('/home', STEM, hash)).toThrow(/not an object hash/);
  });

  it('whatever it holds, a path is refused or stays below the transcripts', () => {
    const part = fc.oneof(fc.string(), fc.constantFrom(RUN_ID, CHILD_ID, STEM, '..', '/', `../../${STEM}`));
    fc.assert(
      fc.property(part, part, part, (runId, agentId, transcript) => {
        let file: string;
        try {
          file = transcriptFile('/home', { runId, agentId, transcript });
        } catch {
          return;
        }
        const below = relative(transcriptsRoot('/home'), file);
        expect(isAbsolute(below) || below.split(sep).includes('..')).toBe(false);
      }),
    );
  });
});

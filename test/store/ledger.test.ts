import { appendFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newTranscriptStem, runFolder, subagentsFolder } from '../../src/store/layout.ts';
import { claimSlot } from '../../src/store/ledger.ts';
import { fill, makeRoom, mountSmallDisk, smallDiskProblem, unmount } from '../helpers/small-disk.ts';

describe('the places for sub-agents of a run', () => {
  const stem = newTranscriptStem('a-run', new Date(0));
  let home: string;

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'errand-ledger-'));
    await mkdir(runFolder(home, stem), { recursive: true });
  });

  afterEach(() => rm(home, { recursive: true, force: true }));

  it('go to the first that ask, and no more of them than there are', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `agent-${index}`);
    const granted = await Promise.all(ids.map((id) => claimSlot(home, stem, id, 5)));
    expect(granted.filter(Boolean)).toHaveLength(5);
    const again = await Promise.all(ids.map((id) => claimSlot(home, stem, id, 5)));
    expect(again).toEqual(granted);
  });

  it('are kept once for a claim that is made again', async () => {
    await claimSlot(home, stem, 'one', 2);
    await claimSlot(home, stem, 'one', 2);
    expect(await claimSlot(home, stem, 'two', 2)).toBe(true);
    const lines = (await readFile(join(runFolder(home, stem), 'ledger.jsonl'), 'utf8')).split('\n').filter(Boolean);
    expect(lines).toHaveLength(2);
  });

  it.each([
    ['deleted', (file: string) => rm(file)],
    ['overwritten', (file: string) => writeFile(file, '\u0000rubbish\n{"v":1')],
  ])('promise 4: stay taken by the agents that are there when the ledger was %s', async (_, damage) => {
    const children = ['00000000000a', '00000000000b'];
    for (const id of children) expect(await claimSlot(home, stem, id, 3)).toBe(true);
    await mkdir(subagentsFolder(home, stem));
    for (const id of children) await writeFile(join(subagentsFolder(home, stem), `agent-${id}.jsonl`), '');
    await damage(join(runFolder(home, stem), 'ledger.jsonl'));
    expect(await claimSlot(home, stem, '00000000000c', 3)).toBe(true);
    expect(await claimSlot(home, stem, '00000000000d', 3)).toBe(false);
    expect(await claimSlot(home, stem, '00000000000a', 3)).toBe(true);
  });

  it.skipIf(smallDiskProblem() !== undefined)(
    'a disk that takes half a claim is a full disk, not a refusal',
    async () => {
      const disk = join(home, 'disk');
      await mkdir(disk);
      mountSmallDisk(disk);
      try {
        await mkdir(runFolder(disk, stem), { recursive: true });
        expect(await claimSlot(disk, stem, 'one', 9)).toBe(true);
        const ledger = join(runFolder(disk, stem), 'ledger.jsonl');
        await appendFile(ledger, '\n'.repeat(4096 - 20 - (await stat(ledger)).size));
        fill(disk);
        await expect(claimSlot(disk, stem, 'two', 9)).rejects.toMatchObject({ code: 'ENOSPC' });
        makeRoom(disk);
        expect(await claimSlot(disk, stem, 'two', 9)).toBe(true);
      } finally {
        unmount(disk);
      }
    },
  );

  it('survive a torn line', async () => {
    await writeFile(join(runFolder(home, stem), 'ledger.jsonl'), '{"v":1,"type":"spawn","agentId":"to');
    expect(await claimSlot(home, stem, 'one', 1)).toBe(true);
    expect(await claimSlot(home, stem, 'two', 1)).toBe(false);
  });
});

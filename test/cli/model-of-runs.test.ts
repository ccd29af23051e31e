import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepModelOfRuns, onlyDemoRunsWait } from '../../src/cli/model-of-runs.ts';
import { loadConfig } from '../../src/config.ts';
import { RecordedRun } from './recorded-run.ts';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'errand-models-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

function record(runId: string, modelServer?: string): RecordedRun {
  const run = new RecordedRun(home, runId);
  run.start({ ...(modelServer !== undefined && { modelServer }) });
  return run;
}

describe('without workers', () => {
  it.each([
    ['nothing waits', [], false],
    ["a demo's run waits", ['simulator'], true],
    ['a run of an older build waits', [undefined], false],
    ["a real run waits beside a demo's", ['simulator', 'https://host'], false],
  ])('%s: the simulator is for them: %s, %s', async (_, servers, isDemo) => {
    servers.forEach((server, index) => record(`run-${index}`, server));
    expect(await onlyDemoRunsWait(home)).toBe(isDemo);
  });

  it('a run that has ended does not wait', async () => {
    record('over', 'simulator').end('completed', 1);
    expect(await onlyDemoRunsWait(home)).toBe(false);
  });

  it('a command may start them for any server, and hears which runs will wait', async () => {
    const config = loadConfig({ env: { ERRAND_HOME: home } });
    expect(await keepModelOfRuns(config, 'https://host')).toEqual([]);
    for (const name of ['a', 'b', 'c', 'd']) record(name, 'https://other');
    record('mine', 'https://host');
    record('older');
    const [line = '', ...more] = await keepModelOfRuns(config, 'https://host');
    expect(line).toMatch(
      /^The workers start with https:\/\/host; these runs wait for theirs: (\w \(https:\/\/other\), ){2}\w \(https:\/\/other\) and 1 more\.$/,
    );
    expect(more).toEqual([]);
  });
});

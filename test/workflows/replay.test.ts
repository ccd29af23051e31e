import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';
import { decoded } from '../histories/without-machine.ts';
import { installQuietRuntime, quietLogger, replayProblems } from '../helpers/replay.ts';

const HISTORIES = fileURLToPath(new URL('../histories', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('../../src/workflows/index.ts', import.meta.url));

/** What each version has a history of. */
const KINDS = [
  ...['plain', 'tools', 'tree-root', 'tree-child', 'child-failure', 'cancel-root', 'cancel-child', 'timeout'],
  ...['max-turns', 'steering', 'continue-as-new-1', 'continue-as-new-2', 'crash', 'reset'],
];

const files = readdirSync(HISTORIES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'));
const versions = [...new Set(files.map((name) => name.split('/')[0] ?? ''))];

describe('promise 10: the workflow code replays', () => {
  let code = '';

  beforeAll(async () => {
    installQuietRuntime();
    ({ code } = await bundleWorkflowCode({ workflowsPath: WORKFLOWS, logger: quietLogger() }));
  }, 60_000);

  it.each(files)('%s', async (name) => {
    expect(await replayProblems([{ name, history: read(name) }], { code })).toEqual([]);
  });

  it('none of them any more once it does something else', async () => {
    const changed = code.replaceAll('.openTranscript.executeWithOptions', '.runTool.executeWithOptions');
    const opening = files.filter((name) => !name.endsWith('continue-as-new-2.json'));
    const histories = opening.map((name) => ({ name, history: read(name) }));
    const problems = await replayProblems(histories, { code: changed });
    expect(problems.map((problem) => problem.split(':')[0])).toEqual(opening);
    expect(problems.every((problem) => problem.includes('TMPRL1100'))).toBe(true);
  });
});

describe('the kept histories', () => {
  it.each(versions)('of version %s are of every kind', (version) => {
    const names = files.filter((name) => name.startsWith(`${version}/`)).map((name) => basename(name, '.json'));
    expect(KINDS.filter((kind) => !names.some((name) => name.startsWith(kind)))).toEqual([]);
  });

  it.each(files)('%s holds no secret and nothing of the machine that recorded it', (name) => {
    const text = readFileSync(join(HISTORIES, name), 'utf8').replace(/"data":"([^"]*)"/g, (_all, data: string) =>
      decoded(data),
    );
    const withoutTests = text.replaceAll(/\/tmp\/errand-test-\w+(?:\/home)?/g, '');
    expect(/sk-(?:ant|test)|api[-_]?key|authorization/i.exec(text)?.[0]).toBeUndefined();
    expect(
      /\/(?:work|root|tmp|home\/\w+\/\w+)\/|node_modules|file:\/\/|dist\/worker/.exec(withoutTests)?.[0],
    ).toBeUndefined();
    expect(/"identity":"(?!recorder")/.exec(text)?.[0]).toBeUndefined();
  });
});

function read(name: string): unknown {
  return JSON.parse(readFileSync(join(HISTORIES, name), 'utf8'));
}

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator, toBase64, toMarker, toScriptPrompt } from '../../src/simulator/index.ts';
import type { Simulator } from '../../src/simulator/index.ts';
import { lineOf, pathIn } from '../../src/simulator/scenarios/demo-results.ts';
import { runMiniAgent } from './mini-agent.ts';
import type { Bench } from './mini-agent.ts';
import { client } from './requests.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/csv-report', import.meta.url));

let simulator: Simulator;
let bench: Bench;
let calls: string[];

beforeEach(async () => {
  simulator = await startSimulator();
  calls = [];
  const workspace = mkdtempSync(join(tmpdir(), 'csv-report-'));
  cpSync(EXAMPLE, workspace, { recursive: true });
  bench = { client: client(simulator), workspace, onCall: (name) => calls.push(name) };
});

afterEach(async () => {
  await simulator.close();
  rmSync(bench.workspace, { recursive: true });
});

const file = (name: string): string => join(bench.workspace, name);

describe('demo', () => {
  it('repairs both places, adds a test and reports that all tests pass', async () => {
    const report = await runMiniAgent(bench, 'Repair it. [[scenario:demo]]');
    expect(report).toMatch(/^Fixed.*All tests pass/s);
    expect(readFileSync(file('src/csv.js'), 'utf8')).toContain(`text.replaceAll('"', '""')`);
    expect(readFileSync(file('src/html.js'), 'utf8')).toContain(`.replaceAll('<', '&lt;')`);
    expect(calls.filter((name) => name === 'task')).toHaveLength(2);
    expect(simulator.ledger().filter((entry) => entry.outcome !== 'complete')).toEqual([]);
    expect(new Set(simulator.ledger().map((entry) => entry.scenario))).toEqual(
      new Set(['demo', 'demo-cause', 'demo-check']),
    );
  });

  it('changes nothing when the tests pass already', async () => {
    await runMiniAgent(bench, '[[scenario:demo]]');
    calls.length = 0;
    expect(await runMiniAgent(bench, '[[scenario:demo]]')).toContain('nothing to repair');
    expect(calls).not.toContain('edit');
  });

  it('goes on without a shell and says that it could not run the tests', async () => {
    expect(
      await runMiniAgent(
        { ...bench, refuse: 'bash', refusal: 'bash is refused: no sandbox here' },
        '[[scenario:demo]]',
      ),
    ).toContain('could not run the tests');
  });

  it('fails loudly when the tests still fail after the change', async () => {
    writeFileSync(
      file('test/other.test.js'),
      `import { test } from 'node:test';\ntest('no', () => { throw new Error('no'); });\n`,
    );
    await expect(runMiniAgent(bench, '[[scenario:demo]]')).rejects.toThrow(
      /Scenario demo, turn 7: expected the tests to pass/,
    );
  });

  it('fails loudly in another workspace', async () => {
    rmSync(file('src/csv.js'));
    await expect(runMiniAgent(bench, '[[scenario:demo]]')).rejects.toThrow(/Scenario demo, turn 2/);
  });

  it('goes on alone when a sub-agent was stopped', async () => {
    const stopping = { ...bench, refuse: 'task', refusal: '[Agent: x] was cancelled' };
    expect(await runMiniAgent(stopping, '[[scenario:demo]]')).toMatch(/All tests pass/);
  });

  it('fails loudly when a sub-agent cannot be had', async () => {
    const failing = { ...bench, refuse: 'task', refusal: 'no such tool' };
    await expect(runMiniAgent(failing, '[[scenario:demo]]')).rejects.toThrow(
      /Scenario demo, turn 4: expected no error/,
    );
  });

  it.each(['src/a.js', '/tmp/x/src/a.js', './src/a.js'])('takes the path as the tools print it: %s', (path) => {
    const result = { toolUseId: 'x', name: 'glob', input: {}, isError: false, text: `README.md\n${path}\nsrc/b.js` };
    expect(pathIn([result], 'src/a.js')).toBe(path);
    expect(pathIn([{ ...result, text: `${path}:7:code here` }], 'src/a.js')).toBe(path);
  });

  it.each(['    12\tthe code', '    12→the code', 'src/a.js:12:the code', '12:the code'])(
    'finds the line in %j',
    (text) => {
      expect(lineOf([{ toolUseId: 'x', name: 'read', input: {}, isError: false, text }], 'the code')).toBe(12);
    },
  );
});

describe('built-in scenarios', () => {
  it('tree has three children, two of them with one of their own', async () => {
    const report = await runMiniAgent(bench, '[[scenario:tree]]');
    expect(calls.filter((name) => name === 'task')).toHaveLength(5);
    for (const name of ['root', 'child-1', 'child-1.1', 'child-2', 'child-2.1', 'child-3'])
      expect(report).toContain(`${name} is done`);
  });

  it('tree takes width, depth and branches', async () => {
    await runMiniAgent(bench, '[[scenario:tree width=2 depth=3 branches=1 path=none]]');
    expect(calls).toEqual(Array.from({ length: 4 }, () => 'task'));
  });

  it('tool-loop never makes the same call twice', async () => {
    const marker = '[[scenario:tool-loop turns=7 path=README.md]]';
    expect(await runMiniAgent(bench, marker)).toBe('Done after 7 turns.');
    const replies =
      simulator
        .ledger()
        .at(-1)
        ?.messages?.filter((message) => message.role === 'assistant') ?? [];
    const inputs = replies.flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.map((block) => JSON.stringify(block.input ?? '')),
    );
    expect(new Set(inputs.filter((input) => input !== '""')).size).toBe(7);
  });

  it('bash reports what its commands put out', async () => {
    const commands = ['echo one', 'echo "two [[x]]"; exit 3'].map(toBase64).join(',');
    const report = await runMiniAgent(bench, toMarker('bash', { commands }));
    expect(report).toMatch(/one\n[\s\S]*exit code: 0[\s\S]*two \[\[x\]\]\n[\s\S]*exit code: 3/);
  });

  it('edit changes a file', async () => {
    const args = { path: 'README.md', old: toBase64('One test fails'), new: toBase64('No test fails') };
    expect(await runMiniAgent(bench, toMarker('edit', args))).toBe('README.md is changed.');
    expect(readFileSync(file('README.md'), 'utf8')).toContain('No test fails');
  });

  it('bad-input fails when a wrong call is accepted', async () => {
    await expect(runMiniAgent(bench, '[[scenario:bad-input kinds=unknown,forged]]')).rejects.toThrow(
      /expected an error, but task/,
    );
    expect(await runMiniAgent(bench, '[[scenario:bad-input kinds=unknown times=2]]')).toContain(
      'There is no tool Write2',
    );
  });

  it('a script nests: the parent writes its child its own', async () => {
    const child = toScriptPrompt([
      { calls: [{ name: 'read', input: { file_path: 'README.md' } }] },
      { text: 'child: {{match:# (\\S+)}}' },
    ]);
    const parent = toScriptPrompt([
      { calls: [{ name: 'task', input: { description: 'read the readme', prompt: child } }] },
      { expect: { tool: 'task', includes: '[Agent: read the readme]' }, text: 'parent: {{result:0}}' },
    ]);
    expect(await runMiniAgent(bench, parent)).toContain('child: csv-report');
  });
});

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { callFolder, openCallJournal } from '../../src/effects/journal.ts';
import { MAX_KEPT_BYTES, runCall, StaleAttemptError } from '../../src/effects/run-call.ts';
import type { ToolResult } from '../../src/tools/tool.ts';
import { eventually, supervisorPid } from '../jobs/job-bench.ts';
import { buildPrograms, SUPERVISOR_SOURCE } from '../jobs/supervisor-program.ts';
import { appendTool, commandTool, createLookTool, newsTool, testOwner, testPolicy, testRun } from './call-fixture.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'errand-effects-')));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const programs = await buildPrograms({
  supervisor: SUPERVISOR_SOURCE,
  attempt: fileURLToPath(new URL('./one-attempt.ts', import.meta.url)),
});
const STOP_AT = fileURLToPath(new URL('../helpers/stop-at.mjs', import.meta.url));
const workspace = join(root, 'workspace');
mkdirSync(workspace);

let calls = 0;
function newCall(): { folder: string; path: string } {
  const ref = { runId: 'run', agentId: 'agent', transcript: '', epoch: 0, branch: '' };
  const callId = `t1.${calls++}`;
  return { folder: callFolder(root, ref, callId), path: join(workspace, callId) };
}

/** Runs an attempt in a process of its own; undefined when it was killed. */
async function attempt(input: object): Promise<ToolResult | undefined> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [programs.attempt, JSON.stringify(input)]);
    return JSON.parse(stdout) as ToolResult;
  } catch (error) {
    if ((error as { signal?: string }).signal === 'SIGKILL') return undefined;
    throw error;
  }
}

describe('a file change', () => {
  const STEPS = ['kept', 'claim', 'readIntent', 'writeIntent', 'holds', 'keep'].flatMap((name) => [
    `before ${name}`,
    `after ${name}`,
  ]);

  it.each(STEPS)('killed %s is made exactly once over all attempts', async (step) => {
    const { folder, path } = newCall();
    writeFileSync(path, 'first\n');
    expect(await attempt({ folder, path, workspace, line: 'second', step })).toBeUndefined();
    expect(['first\n', 'first\nsecond\n']).toContain(readFileSync(path, 'utf8'));
    const result = await attempt({ folder, path, workspace, line: 'second' });
    expect(readFileSync(path, 'utf8')).toBe('first\nsecond\n');
    expect(result?.isError).toBe(false);
    expect(await attempt({ folder, path, workspace, line: 'second' })).toEqual(result);
    expect(readFileSync(path, 'utf8')).toBe('first\nsecond\n');
  });

  it('killed in the middle of writing leaves the old file; the next attempt makes the change and no litter stays', async () => {
    const { folder } = newCall();
    const place = join(workspace, 'large');
    mkdirSync(place);
    const path = join(place, 'file');
    writeFileSync(path, 'first\n');
    const input = { folder, path, workspace, line: 'second', size: 200 << 20 };
    const child = spawn(process.execPath, [programs.attempt, JSON.stringify(input)]);
    const exited = once(child, 'exit');
    await eventually(() =>
      readdirSync(place).some((name) => name.endsWith('.tmp') && statSync(join(place, name)).size > 0),
    );
    child.kill('SIGKILL');
    await exited;
    expect(readFileSync(path, 'utf8')).toBe('first\n');
    await attempt(input);
    expect(statSync(path).size).toBe('first\nsecond\n'.length + (200 << 20));
    expect(readdirSync(place)).toEqual(['file']);
    rmSync(place, { recursive: true });
  }, 30_000);

  it('is not made over somebody else’s: the model is told of the conflict, every time alike', async () => {
    const { folder, path } = newCall();
    writeFileSync(path, 'first\n');
    await attempt({ folder, path, workspace, line: 'second', step: 'after writeIntent' });
    writeFileSync(path, 'by a person\n');
    const result = await runCall(testRun({ folder, workspace, tool: appendTool, input: { path, line: 'second' } }));
    expect(result).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^Conflict: .*not overwritten/) as string,
    });
    expect(readFileSync(path, 'utf8')).toBe('by a person\n');
    writeFileSync(path, 'first\n');
    const again = await runCall(testRun({ folder, workspace, tool: appendTool, input: { path, line: 'second' } }));
    expect(again).toEqual(result);
    expect(readFileSync(path, 'utf8')).toBe('first\n');
  });

  it.each([
    ['after writeIntent', /^Denied by the sandbox mode read-only/, 'first\n'],
    ['before keep', /^appended to/, 'first\nsecond\n'],
  ])('that may not be made any more after a death %s is told as what became of it', async (step, text, content) => {
    const { folder, path } = newCall();
    writeFileSync(path, 'first\n');
    await attempt({ folder, path, workspace, line: 'second', step });
    const run = testRun({ folder, workspace, tool: appendTool, input: { path, line: 'second' } });
    const policy = testPolicy(workspace, { sandbox: 'read-only' });
    const result = await runCall({ ...run, context: { ...run.context, policy } });
    expect(result.text).toMatch(text);
    expect(readFileSync(path, 'utf8')).toBe(content);
  });

  it('two attempts in one process make it once and answer alike', async () => {
    const { folder, path } = newCall();
    const run = () => runCall(testRun({ folder, workspace, tool: appendTool, input: { path, line: 'only' } }));
    const [first, second] = await Promise.all([run(), run()]);
    expect(first).toEqual(second);
    expect(readFileSync(path, 'utf8')).toBe('only\n');
  });

  it('two attempts in two processes at once make it once', async () => {
    for (let round = 0; round < 5; round++) {
      const { folder, path } = newCall();
      const input = { folder, path, workspace, line: 'only' };
      const settled = await Promise.allSettled([attempt(input), attempt(input)]);
      expect(settled.some(({ status }) => status === 'fulfilled')).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe('only\n');
    }
  }, 20_000);

  it('of an attempt the server no longer waits for is not made', async () => {
    const { folder, path } = newCall();
    await openCallJournal(folder).claim(testOwner(2));
    const run = testRun({ folder, workspace, tool: appendTool, input: { path, line: 'late' } });
    await expect(runCall({ ...run, mayAct: async () => false })).rejects.toThrow(StaleAttemptError);
    expect(existsSync(path)).toBe(false);
    expect(await run.journal.kept()).toBeUndefined();
  });

  it.each([
    ['link claim\\.json$', 'before it claims the call'],
    ['link result\\.json$', 'before it keeps its result'],
    ['rename intent\\.json$', 'before it notes what it will do'],
    ['open \\.errand-.*\\.tmp$', 'before it writes the new content'],
    ['rename \\.errand-.*\\.tmp$', 'right before it puts the new content in place'],
  ])('is not made again by an attempt that is stopped (%s) %s and goes on after the next one', async (stopAt) => {
    const { folder, path } = newCall();
    writeFileSync(path, 'first\n');
    const mark = `${folder}-stopped`;
    const env = { ...process.env, NODE_OPTIONS: `--import=${STOP_AT}`, STOP_AT: stopAt, STOP_MARK: mark };
    const input = { folder, path, workspace, line: 'second', isStale: true };
    const late = spawn(process.execPath, [programs.attempt, JSON.stringify(input)], { env });
    const exited = once(late, 'exit');
    await eventually(() => existsSync(mark));
    const result = await runCall(testRun({ folder, workspace, tool: appendTool, input: { path, line: 'second' } }));
    expect(result.isError).toBe(false);
    // Back again: to the late attempt the file looks as if nothing had been done.
    writeFileSync(path, 'first\n');
    late.kill('SIGCONT');
    await exited;
    expect(readFileSync(path, 'utf8')).toBe('first\n');
    expect(await openCallJournal(folder).kept()).toEqual(result);
    expect(readdirSync(workspace).filter((name) => name.startsWith('.errand-'))).toEqual([]);
  });

  it('is not made by an attempt whose call was taken over while it computed', async () => {
    const { folder, path } = newCall();
    const run = testRun({ folder, workspace, tool: appendTool, input: { path, line: 'late' } });
    const tool: typeof appendTool = {
      ...appendTool,
      prepare: async (input, context) => {
        await run.journal.takeOver(testOwner(2));
        return appendTool.prepare(input, context);
      },
    };
    await expect(runCall({ ...run, tool })).rejects.toThrow('newer attempt');
    expect(existsSync(path)).toBe(false);
  });
});

describe('a command', () => {
  it('whose waiting worker is killed runs once; the next attempt gets its whole output', async () => {
    const { folder } = newCall();
    const command = 'echo run >> counter; sleep 0.5; echo end; cat counter';
    const input = { folder, workspace, command, supervisorPath: programs.supervisor };
    const child = spawn(process.execPath, [programs.attempt, JSON.stringify(input)]);
    await supervisorPid(folder);
    child.kill('SIGKILL');
    expect(await attempt(input)).toMatchObject({ text: 'end\nrun\nexit code: 0', facts: { exitCode: 0 } });
    expect(readFileSync(join(workspace, 'counter'), 'utf8')).toBe('run\n');
  });

  it('killed right before its result is kept is not run again', async () => {
    const { folder } = newCall();
    const input = { folder, workspace, command: 'echo run >> counted', supervisorPath: programs.supervisor };
    expect(await attempt({ ...input, step: 'before keep' })).toBeUndefined();
    await attempt(input);
    expect(readFileSync(join(workspace, 'counted'), 'utf8')).toBe('run\n');
  });

  it('is not started by an attempt the server no longer waits for', async () => {
    const { folder } = newCall();
    const run = testRun({ folder, workspace, tool: commandTool, input: { command: 'touch late' } });
    const planSandbox = async () => ({ kind: 'none', env: {} }) as const;
    await expect(runCall({ ...run, planSandbox, mayAct: async () => false })).rejects.toThrow(StaleAttemptError);
    expect(existsSync(folder)).toBe(false);
  });
});

describe('a call', () => {
  const look = (text: () => string) => ({ ...newCall(), workspace, tool: createLookTool(text), input: {} });

  it('that was answered is answered from the journal, also at a first attempt', async () => {
    let looks = 0;
    const call = look(() => `look ${++looks}`);
    expect((await runCall(testRun(call))).text).toBe('look 1');
    expect((await runCall(testRun(call))).text).toBe('look 1');
  });

  it('that failed with news for the model keeps the news', async () => {
    const call = { ...newCall(), workspace, tool: newsTool('no such file'), input: {} };
    expect(await runCall(testRun(call))).toEqual({ text: 'no such file', isError: true });
    expect(await runCall(testRun({ ...call, tool: createLookTool(() => 'x') }))).toEqual({
      text: 'no such file',
      isError: true,
    });
  });

  it('that met trouble of the machine is tried again by the next attempt', async () => {
    let isFull = true;
    const call = look(() => {
      if (isFull) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' });
      return 'better';
    });
    await expect(runCall(testRun(call))).rejects.toThrow('disk full');
    isFull = false;
    expect((await runCall(testRun(call))).text).toBe('better');
  });

  it('denied by a rule names the rule and whose it is, and nothing happens', async () => {
    const { folder, path } = newCall();
    const layers = [{ owner: 'workspace', base: workspace, deny: ['Edit'], ask: [], allow: [] }];
    const run = testRun({ folder, workspace, tool: appendTool, input: { path, line: 'x' } });
    const context = { ...run.context, policy: testPolicy(workspace, { layers }) };
    const { text, isError } = await runCall({ ...run, context });
    expect(text).toMatch(/Edit.*workspace.*Do not repeat/);
    expect([isError, existsSync(path)]).toEqual([true, false]);
  });

  it('that needs approval counts as denied, and says so', async () => {
    const { folder } = newCall();
    const layers = [{ owner: 'user', deny: [], ask: ['Bash'], allow: [] }];
    const run = testRun({ folder, workspace, tool: commandTool, input: { command: 'touch asked' } });
    const { text } = await runCall({ ...run, context: { ...run.context, policy: testPolicy(workspace, { layers }) } });
    expect(text).toMatch(/requires approval.*Do not repeat/);
  });

  it('into errand’s own folder is denied', async () => {
    const { folder, path } = newCall();
    const run = testRun({ folder, workspace, tool: appendTool, input: { path, line: 'x' } });
    const { text } = await runCall({ ...run, forbiddenPaths: [workspace] });
    expect(text).toMatch(/belongs to errand itself/);
  });

  it('with too much to say is cut, and the whole is stored', async () => {
    const call = look(() => '😀'.repeat(100_000));
    const { text, facts } = await runCall(testRun(call));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_KEPT_BYTES);
    expect(text).toMatch(/cut here; the whole result is in/);
    expect(text).not.toContain('\ufffd');
    expect(facts?.spilledTo).toBe(join(call.folder, 'spilled'));
  });

  it('whose signal is aborted does nothing', async () => {
    const run = testRun(look(() => 'seen'));
    const context = { ...run.context, signal: AbortSignal.abort(new Error('cancelled')) };
    await expect(runCall({ ...run, context })).rejects.toThrow('cancelled');
    expect(await run.journal.kept()).toBeUndefined();
  });
});

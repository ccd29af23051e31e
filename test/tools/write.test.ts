import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readTool } from '../../src/tools/read.ts';
import { writeTool } from '../../src/tools/write.ts';
import { freshFolder, mkfifo, newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

testTool(writeTool, {
  valid: [[{ file_path: 'src/a.ts', content: '' }, 'write src/a.ts']],
  invalid: [
    [{ file_path: 'a' }, '- content: missing; expected string'],
    [{ file_path: 'a', content: ['x'] }, '- content: got an array; expected string'],
  ],
});

describe('a new file', () => {
  test('is written byte for byte, with its folders', async () => {
    const agent = newAgent();
    const result = await agent.apply(writeTool, { file_path: 'new/deep/a.ts', content: 'one\r\ntwo' });
    expect(readFileSync(agent.path('new/deep/a.ts'), 'utf8')).toBe('one\r\ntwo');
    expect(result.text).toBe('created new/deep/a.ts (2 lines)');
    expect(result.facts?.wrote).toMatchObject({ path: agent.path('new/deep/a.ts'), preSha256: null, added: 2 });
  });

  test('is not made by looking at the change', async () => {
    const agent = newAgent();
    await writeTool.prepare({ file_path: 'new/a.ts', content: '' }, agent.context);
    expect(existsSync(agent.path('new'))).toBe(false);
  });

  test('may be empty, and replaced by its author without reading it', async () => {
    const agent = newAgent();
    await agent.apply(writeTool, { file_path: 'a', content: '' });
    expect(readFileSync(agent.path('a'), 'utf8')).toBe('');
    const { text } = await agent.apply(writeTool, { file_path: 'a', content: 'x\ny\n' });
    expect(text).toBe('replaced a (+2 −0)');
  });
});

describe('a file that exists', () => {
  test('must have been read', async () => {
    const agent = newAgent();
    agent.put('a', 'old\n');
    await expect(agent.apply(writeTool, { file_path: 'a', content: '' })).rejects.toThrow(/You have not read 'a' yet/);
    expect(readFileSync(agent.path('a'), 'utf8')).toBe('old\n');
  });

  test('must have been read whole', async () => {
    const agent = newAgent();
    agent.put('a', 'one\ntwo\n');
    agent.saw(await readTool.execute({ file_path: 'a', limit: 1 }, agent.context));
    await expect(agent.apply(writeTool, { file_path: 'a', content: '' })).rejects.toThrow(/only a part of 'a'/);
  });

  test('must not have changed since, even within the same time stamp', async () => {
    const agent = newAgent();
    const path = agent.put('a', 'one\n');
    agent.saw(await readTool.execute({ file_path: 'a' }, agent.context));
    writeFileSync(path, 'two\n');
    await expect(agent.apply(writeTool, { file_path: 'a', content: '' })).rejects.toThrow(/has changed since you read/);
    expect(readFileSync(path, 'utf8')).toBe('two\n');
  });

  test('keeps its mode and counts what changed', async () => {
    const agent = newAgent();
    const path = agent.put('run.sh', 'a\nb\nc\n');
    chmodSync(path, 0o755);
    agent.saw(await readTool.execute({ file_path: 'run.sh' }, agent.context));
    const { text } = await agent.apply(writeTool, { file_path: path, content: 'a\nB\nc\nd\n' });
    expect(text).toBe('replaced run.sh (+2 −1)');
    expect(statSync(path).mode & 0o777).toBe(0o755);
  });
});

describe('what write refuses', () => {
  test.each(['../out.txt', '/etc/errand-test', 'link/out.txt', 'chain/out.txt', 'link/../../out.txt'])(
    '%s, which is outside',
    async (file_path) => {
      const agent = newAgent();
      symlinkSync(freshFolder(), agent.path('link'));
      symlinkSync('link', agent.path('chain'));
      await expect(writeTool.prepare({ file_path, content: '' }, agent.context)).rejects.toThrow(
        /is outside the folder/,
      );
    },
  );

  test.each([
    '.claude/settings.json',
    'sub/.errand/agents/a.md',
    '.git/hooks/pre-commit',
    '.git/config',
    '.GIT/Hooks/pre-commit',
    '.git',
    '.git/modules/x/config',
    'alias/hooks/pre-commit',
    'alias/config',
  ])('%s, which would arm the workspace', async (file_path) => {
    const agent = newAgent();
    mkdirSync(agent.path('.gitx'));
    symlinkSync('.git', agent.path('alias'));
    if (file_path !== '.git') mkdirSync(agent.path('.git'));
    const change = { file_path, content: '' };
    await expect(writeTool.prepare(change, agent.context)).rejects.toThrow(/read-only to every tool/);
    await expect(writeTool.actions(change, agent.context)).rejects.toThrow(/read-only to every tool/);
  });

  test('a folder, a FIFO, a read-only file', async () => {
    const agent = newAgent();
    mkdirSync(agent.path('src'));
    mkfifo(agent.path('fifo'));
    chmodSync(agent.put('fixed', 'x'), 0o444);
    agent.saw(await readTool.execute({ file_path: 'fixed' }, agent.context));
    const write = (file_path: string) => writeTool.prepare({ file_path, content: '' }, agent.context);
    await expect(write('src')).rejects.toThrow(/not a regular file but a folder/);
    await expect(write('fifo')).rejects.toThrow(/not a regular file but a FIFO/);
    await expect(write('fixed')).rejects.toThrow(/'fixed' is read-only \(mode 0444\)/);
    await expect(write('fixed/a')).rejects.toThrow(/is a file, not a folder/);
  });

  test('git files that run nothing are not protected', async () => {
    const agent = newAgent();
    await agent.apply(writeTool, { file_path: '.gitignore', content: 'dist\n' });
    await agent.apply(writeTool, { file_path: '.github/config', content: 'x\n' });
    expect(readFileSync(join(agent.workspace, '.gitignore'), 'utf8')).toBe('dist\n');
  });
});

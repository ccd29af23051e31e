import { mkdirSync, symlinkSync, utimesSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { globTool } from '../../src/tools/glob.ts';
import type { TestAgent } from './tool-context.ts';
import { mkfifo, newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

testTool(globTool, {
  valid: [
    [{ pattern: '**/*.ts' }, 'glob **/*.ts'],
    [{ pattern: '*.md', path: 'docs' }, 'glob *.md in docs'],
  ],
  invalid: [
    [{}, '- pattern: missing; expected string'],
    [{ pattern: 'x'.repeat(1001) }, 'expected at most 1000 characters'],
  ],
});

async function glob(agent: TestAgent, pattern: string, path?: string): Promise<readonly string[]> {
  const { text } = await globTool.execute({ pattern, ...(path === undefined ? {} : { path }) }, agent.context);
  return text.split('\n');
}

function newTree(options: Parameters<typeof newAgent>[0] = {}): TestAgent {
  const agent = newAgent(options);
  const names = [
    'a.ts',
    'src/b.ts',
    'src/deep/c.ts',
    'src/d.js',
    '.hidden/e.ts',
    'build/f.ts',
    'node_modules/m/g.ts',
    'h.log',
  ];
  for (const [index, name] of names.entries()) {
    const atS = 1_700_000_000 + index;
    utimesSync(agent.put(name, ''), atS, atS);
  }
  agent.put('.gitignore', 'node_modules\nbuild/\n*.log\n');
  utimesSync(agent.path('.gitignore'), 1, 1);
  agent.put('.git/config', '');
  agent.put('.git/x.ts', '');
  return agent;
}

describe('glob', () => {
  test('lists newest first, hidden files too, and what git ignores not, without a git repository', async () => {
    const agent = newTree();
    expect(await glob(agent, '**/*.ts')).toEqual(['.hidden/e.ts', 'src/deep/c.ts', 'src/b.ts', 'a.ts']);
  });

  test.each([
    ['*.ts', ['.hidden/e.ts', 'src/deep/c.ts', 'src/b.ts', 'a.ts']],
    ['src/*.ts', ['src/b.ts']],
    ['./src/*.{ts,js}', ['src/d.js', 'src/b.ts']],
    ['**/*', ['.hidden/e.ts', 'src/d.js', 'src/deep/c.ts', 'src/b.ts', 'a.ts', '.gitignore']],
    ['src/**', ['src/d.js', 'src/deep/c.ts', 'src/b.ts']],
    ['*.log', ['[No files match.]']],
    ['**/m/**', ['[No files match.]']],
    ['.git/*', ['[No files match.]']],
  ])('%s', async (pattern, names) => {
    expect(await glob(newTree(), pattern)).toEqual(names);
  });

  test('takes a folder, and a pattern that is absolute', async () => {
    const agent = newTree();
    expect(await glob(agent, '*.ts', 'src/deep')).toEqual(['src/deep/c.ts']);
    expect(await glob(agent, `${agent.workspace}/src/*.ts`)).toEqual(['src/b.ts']);
  });

  test('shows at most 100 and says how many there are', async () => {
    const agent = newAgent();
    for (let number = 0; number < 120; number++) agent.put(`f${number}`, '');
    const lines = await glob(agent, '*');
    expect(lines).toHaveLength(101);
    expect(lines.at(-1)).toBe('[The newest 100 of 120 files. Narrow the pattern or the path.]');
  });

  test('leaves out what may not be read', async () => {
    const agent = newTree({ layer: { deny: ['Read(./src/deep/**)', 'Read(a.ts)'], ask: ['Read(.hidden/**)'] } });
    expect(await glob(agent, '**/*.ts')).toEqual(['src/b.ts']);
    expect(await glob(agent, '*', 'src/deep')).toEqual(['[No files match.]']);
    const closed = newTree({ layer: { deny: ['Read(src)'] } });
    await expect(glob(closed, '*', 'src')).rejects.toThrow(/Denied by the rule Read\(src\)/);
  });

  test('follows no links and lists no FIFOs', async () => {
    const agent = newTree();
    symlinkSync('..', agent.path('src/loop'));
    symlinkSync('/etc', agent.path('etc'));
    mkfifo(agent.path('fifo.ts'));
    expect(await glob(agent, 'src/**/*.ts')).toEqual(['src/deep/c.ts', 'src/b.ts']);
    expect(await glob(agent, '**/passwd')).toEqual(['[No files match.]']);
    expect(await glob(agent, 'fifo*')).toEqual(['[No files match.]']);
  });

  test.each([
    ['[', undefined, /unclosed character class/],
    ['../*', undefined, /has '\.\.' in it/],
    ['/etc/*', undefined, /is not below/],
    ['*', '..', /outside the folders/],
    ['*', 'a.ts', /is a file, not a folder/],
    ['*', 'gone', /'gone' does not exist/],
  ])('%s in %s is an error with words', async (pattern, path, problem) => {
    await expect(glob(newTree(), pattern, path)).rejects.toThrow(problem);
  });

  test('is ended by an abort', async () => {
    const agent = newAgent({ roots: ['/'] });
    mkdirSync(agent.path('x'));
    const controller = new AbortController();
    const context = { ...agent.context, signal: controller.signal };
    const listing = globTool.execute({ pattern: '**/*.never', path: '/usr' }, context);
    setImmediate(() => controller.abort(new Error('stopped')));
    await expect(listing).rejects.toThrow('stopped');
  });
});

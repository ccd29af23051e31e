import { symlinkSync, truncateSync, utimesSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { GrepInput } from '../../src/tools/grep.ts';
import { grepTool } from '../../src/tools/grep.ts';
import { isPathError, pathErrors } from '../../src/tools/ripgrep.ts';
import { MAX_RESULT_BYTES } from '../../src/tools/text.ts';
import type { TestAgent } from './tool-context.ts';
import { mkfifo, newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

testTool(grepTool, {
  valid: [
    [{ pattern: 'foo' }, 'grep foo'],
    [{ pattern: '-x\n', path: 'src', '-i': true, output_mode: 'content', '-A': 1 }, 'grep -x in src'],
  ],
  invalid: [
    [{ pattern: '' }, '- pattern: got ""; expected at least 1 characters'],
    [{ pattern: 'a', output_mode: 'all' }, 'expected one of "files_with_matches", "content", "count"'],
    [{ pattern: 'a', '-C': -1 }, '- -C: got -1; expected at least 0'],
  ],
});

async function grep(agent: TestAgent, pattern: string, rest: Partial<GrepInput> = {}): Promise<string> {
  const result = await grepTool.execute({ pattern, ...rest }, agent.context);
  expect(result.isError).toBe(false);
  return result.text;
}

function newTree(options: Parameters<typeof newAgent>[0] = {}): TestAgent {
  const agent = newAgent(options);
  const files = {
    'a.ts': 'foo 1\nx\ny\nfoo 2\n',
    'src/b.js': 'Foo 3\r\nbar\r\n',
    'src/c.ts': '-foo 4',
    'h.log': 'foo 5\n',
  };
  for (const [index, [name, content]] of Object.entries(files).entries()) {
    const atS = 1_700_000_000 + index;
    utimesSync(agent.put(name, content), atS, atS);
  }
  agent.put('.gitignore', '*.log\n');
  agent.put('.git/d.ts', 'foo\n');
  agent.put('bin', 'foo\0\n');
  return agent;
}

describe('grep', () => {
  test.each<[title: string, pattern: string, rest: Partial<GrepInput>, text: string]>([
    ['names files, newest first', 'foo', {}, 'src/c.ts\na.ts'],
    ['ignores case when asked', 'foo', { '-i': true }, 'src/c.ts\nsrc/b.js\na.ts'],
    ['shows lines', 'foo', { output_mode: 'content' }, 'a.ts:1:foo 1\na.ts:4:foo 2\nsrc/c.ts:1:-foo 4'],
    ['without numbers', 'foo 1', { output_mode: 'content', '-n': false }, 'a.ts:foo 1'],
    ['shows no carriage return', 'Foo', { output_mode: 'content' }, 'src/b.js:1:Foo 3'],
    ['counts', 'foo', { output_mode: 'count' }, 'a.ts:2\nsrc/c.ts:1'],
    ['context', 'foo 1', { output_mode: 'content', '-A': 1 }, 'a.ts:1:foo 1\na.ts-2-x'],
    [
      'context in groups',
      'foo',
      { output_mode: 'content', '-B': 1, path: 'a.ts' },
      'a.ts:1:foo 1\n--\na.ts-3-y\na.ts:4:foo 2',
    ],
    ['a folder', 'foo', { path: 'src' }, 'src/c.ts'],
    ['a file', 'foo', { path: 'a.ts' }, 'a.ts'],
    ['a file, counted', 'foo', { path: 'a.ts', output_mode: 'count' }, 'a.ts:2'],
    ['a glob', 'foo', { glob: '*.ts', '-i': true }, 'src/c.ts\na.ts'],
    ['a type', 'foo', { type: 'js', '-i': true }, 'src/b.js'],
    ['over lines', 'x.y', { multiline: true, output_mode: 'content' }, 'a.ts:2:x\na.ts:3:y'],
    ['a pattern with a dash', '-foo', { output_mode: 'content' }, 'src/c.ts:1:-foo 4'],
    ['a pattern like an option', '--files', {}, '[No matches.]'],
    ['nothing', 'nowhere', {}, '[No matches.]'],
    ['the first ones', 'foo', { output_mode: 'content', head_limit: 1 }, 'a.ts:1:foo 1\n\n[more]'],
    ['the next ones', 'foo', { output_mode: 'content', head_limit: 2, offset: 2 }, 'src/c.ts:1:-foo 4'],
    ['the first file', 'foo', { head_limit: 1 }, 'src/c.ts\n[Entries 1 to 1 of 2. Go on with offset=1.]'],
    ['the second file', 'foo', { head_limit: 1, offset: 1 }, 'a.ts'],
    ['past the end', 'foo', { offset: 9 }, '[Nothing at offset 9.]'],
  ])('%s', async (_title, pattern, rest, text) => {
    const expected = text.replace('\n\n[more]', '\n[Entries 1 to 1. Go on with offset=1.]');
    expect(await grep(newTree(), pattern, rest)).toBe(expected);
  });

  test.each([
    ['(', {}, /The search failed: regex parse error/],
    ['a', { type: 'nope' }, /unrecognized file type: nope/],
    ['a', { glob: '[' }, /error parsing glob/],
    ['a', { path: 'gone' }, /'gone' does not exist/],
    ['a', { path: '..' }, /outside the folders/],
    ['a\nb', {}, /literal .* not allowed|The search failed/],
  ])('%j with %j is an error, not "no matches"', async (pattern, rest, problem) => {
    await expect(grep(newTree(), pattern, rest)).rejects.toThrow(problem);
  });

  test('reads no FIFO, on its way or by name', async () => {
    const agent = newTree();
    mkfifo(agent.path('src/fifo'));
    expect(await grep(agent, 'foo', { path: 'src' })).toBe('src/c.ts');
    await expect(grep(agent, 'foo', { path: 'src/fifo' })).rejects.toThrow(/not a regular file but a FIFO/);
  });

  test('follows no links', async () => {
    const agent = newTree();
    symlinkSync('/etc', agent.path('etc'));
    symlinkSync('..', agent.path('src/loop'));
    expect(await grep(agent, 'root:|foo', { output_mode: 'count' })).toBe('a.ts:2\nsrc/c.ts:1');
  });

  test('keeps what may not be read out of everything it says', async () => {
    const agent = newTree({ layer: { deny: ['Read(**/.env)'], ask: ['Read(src/c.ts)'] } });
    agent.put('.env', 'SECRET=foo\n');
    agent.put('src/.env', 'SECRET=foo\n');
    for (const output_mode of ['files_with_matches', 'content', 'count'] as const) {
      const text = await grep(agent, 'foo', { output_mode, '-C': 2 });
      expect(text).toContain('a.ts');
      expect(text).not.toMatch(/env|SECRET|c\.ts/);
    }
    expect(await grep(agent, 'SECRET')).toBe('[No matches.]');
    expect(await grep(agent, 'SECRET', { glob: '.env', output_mode: 'content' })).toBe('[No matches.]');
    await expect(grep(agent, 'foo', { path: '.env' })).rejects.toThrow(/Denied by the rule/);
    // A person who was asked about this very file said yes, else it would not have come to this.
    expect(await grep(agent, 'foo', { path: 'src/c.ts' })).toBe('src/c.ts');
  });

  test('stays small on long lines and many matches, and goes on where it ended', async () => {
    const agent = newAgent();
    agent.put('long', `foo${'x'.repeat(5_000_000)}\n`);
    agent.put('many', `${'foo bar baz\n'.repeat(20_000)}`);
    const long = await grep(agent, 'foo', { path: 'long', output_mode: 'content' });
    expect(long.length).toBeLessThan(3000);
    const many = await grep(agent, 'foo', { path: 'many', output_mode: 'content', head_limit: 10_000 });
    expect(Buffer.byteLength(many)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
    const next = Number(/Go on with offset=(\d+)/.exec(many)?.[1]);
    const more = await grep(agent, 'foo', { path: 'many', output_mode: 'content', offset: next, head_limit: 1 });
    expect(more).toContain(`many:${next + 1}:foo bar baz`);
  });

  test('passes over a huge file of zeros', async () => {
    const agent = newTree();
    // To read it would take longer than a test may.
    truncateSync(agent.put('zeros', ''), 1024 ** 4);
    expect(await grep(agent, 'foo 1')).toBe('a.ts');
  });

  test('notes files it could not read beside what it found', async () => {
    // Files that even root cannot read.
    const workspace = `/proc/${process.pid}/task/${process.pid}`;
    const text = await grep(newAgent({ workspace }), '^Name:', { glob: '{status,clear_refs}' });
    expect(text).toMatch(/^status\n\[1 path could not be searched: \.\/clear_refs: /);
    const none = await grep(newAgent({ workspace }), 'no such words', { glob: '{status,clear_refs}' });
    expect(none).toMatch(/^\[No matches\.\]\n\[1 path could not be searched/);
  });

  test('tells errors about paths from errors of the search', () => {
    const closed = 'rg: ./closed: Permission denied (os error 13)';
    expect(isPathError(closed)).toBe(true);
    expect(isPathError('rg: regex parse error:\n    (')).toBe(false);
    expect(pathErrors(`${closed}\n${closed}`)).toMatch(/^2 paths could not be searched: \.\/closed: Permission denied/);
  });

  test('is ended by an abort', async () => {
    const agent = newAgent({ roots: ['/'] });
    const controller = new AbortController();
    const searching = grepTool.execute(
      { pattern: 'never-[0-9]+-x', path: '/usr' },
      { ...agent.context, signal: controller.signal },
    );
    setTimeout(() => controller.abort(new Error('stopped')), 50);
    await expect(searching).rejects.toThrow('stopped');
  });
});

import { linkSync, lstatSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { editTool } from '../../src/tools/edit.ts';
import { readTool } from '../../src/tools/read.ts';
import type { TestAgent } from './tool-context.ts';
import { newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

testTool(editTool, {
  valid: [[{ file_path: 'a.ts', old_string: 'a', new_string: '' }, 'edit a.ts']],
  invalid: [
    [{ file_path: 'a', old_string: '', new_string: 'x' }, '- old_string: got ""; expected at least 1 characters'],
    [{ file_path: 'a', old_string: 'x' }, '- new_string: missing; expected string'],
    [{ file_path: 'a', old_string: 'x', new_string: 'y', replace_all: 'yes' }, 'got "yes"; expected boolean'],
  ],
});

interface Edit {
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

async function seen(content: string | Buffer): Promise<TestAgent> {
  const agent = newAgent();
  agent.put('a.txt', content);
  agent.saw(await readTool.execute({ file_path: 'a.txt' }, agent.context));
  return agent;
}

/** What is on disk after an edit of a file with this content. */
async function edited(content: string | Buffer, edit: Edit): Promise<Buffer> {
  const agent = await seen(content);
  await agent.apply(editTool, { file_path: 'a.txt', ...edit });
  return readFileSync(agent.path('a.txt'));
}

async function problemOf(content: string | Buffer, edit: Edit): Promise<string> {
  const agent = await seen(content);
  const error: unknown = await agent
    .apply(editTool, { file_path: 'a.txt', ...edit })
    .catch((thrown: unknown) => thrown);
  expect(readFileSync(agent.path('a.txt'))).toEqual(Buffer.from(content as string));
  if (error instanceof Error && error.name === 'ToolError') return error.message;
  throw new Error(`no ToolError but ${String(error)}`);
}

describe('the bytes of an edit', () => {
  test.each<[title: string, before: string, edit: Edit, after: string]>([
    ['one word', 'a b c\n', { old_string: 'b', new_string: 'B' }, 'a B c\n'],
    ['every place', 'x y x\n', { old_string: 'x', new_string: 'z', replace_all: true }, 'z y z\n'],
    ['overlapping places', 'aaa\n', { old_string: 'aa', new_string: 'b', replace_all: true }, 'ba\n'],
    ['a dollar sign is a dollar sign', 'x\n', { old_string: 'x', new_string: "$& $1 $$ $` $'" }, "$& $1 $$ $` $'\n"],
    ['a pattern is text', 'a.*(b)[c]\n', { old_string: '.*(b)[c]', new_string: '+' }, 'a+\n'],
    ['CRLF matched by LF', 'a\r\nb\r\nc\r\n', { old_string: 'a\nb', new_string: 'A\nx\nB' }, 'A\r\nx\r\nB\r\nc\r\n'],
    ['a line added to a CRLF file', 'a\r\nb\r\n', { old_string: 'a', new_string: 'a\nnew' }, 'a\r\nnew\r\nb\r\n'],
    [
      'CRLF, every place',
      'a\r\nb\r\na\r\nb',
      { old_string: 'a\nb', new_string: 'c\nd', replace_all: true },
      'c\r\nd\r\nc\r\nd',
    ],
    ['CRLF given as CRLF', 'a\r\nb\r\n', { old_string: 'a\r\nb', new_string: 'c\r\nd' }, 'c\r\nd\r\n'],
    ['mixed ends, LF part', 'a\nb\nc\r\nd\r', { old_string: 'b', new_string: 'B\nB' }, 'a\nB\nB\nc\r\nd\r'],
    ['mixed ends, CRLF part', 'a\nb\r\nc\n', { old_string: 'a\nb\nc', new_string: 'x\ny\nz' }, 'x\ny\r\nz\n'],
    ['CR CR LF elsewhere', 'a\r\r\nb\r\n', { old_string: 'b', new_string: 'c' }, 'a\r\r\nc\r\n'],
    ['a line removed', 'a\r\nb\r\nc\r\n', { old_string: 'b\n', new_string: '' }, 'a\r\nc\r\n'],
    ['BOM kept', '\ufeffa\nb\n', { old_string: 'a\n', new_string: 'x\n' }, '\ufeffx\nb\n'],
    ['BOM given', '\ufeffa\n', { old_string: '\ufeffa', new_string: '\ufeffb' }, '\ufeffb\n'],
    ['no final newline, middle', 'a\nb', { old_string: 'a', new_string: 'x' }, 'x\nb'],
    ['no final newline, last line', 'a\nb', { old_string: 'b', new_string: 'x' }, 'a\nx'],
    ['last line removed', 'a\nb', { old_string: '\nb', new_string: '' }, 'a'],
    ['tabs', '\tif (x) {\n\t\ty\n', { old_string: '\t\ty', new_string: '\t\tz' }, '\tif (x) {\n\t\tz\n'],
    ['all of it removed', 'a', { old_string: 'a', new_string: '' }, ''],
    ['emoji next to it', '😀a😀', { old_string: 'a', new_string: 'é' }, '😀é😀'],
  ])('%s', async (_title, before, edit, after) => {
    expect((await edited(before, edit)).toString('utf8')).toBe(after);
  });

  test('outside the edited text stay as they are, whatever they are', async () => {
    const bytes = fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array.map((byte) => byte || 10)));
    await fc.assert(
      fc.asyncProperty(bytes, bytes, async (before, after) => {
        const content = Buffer.concat([Buffer.from('#'), before, Buffer.from('<needle>'), after]);
        const expected = Buffer.concat([Buffer.from('#'), before, Buffer.from('<thread>'), after]);
        const result = await edited(content, { old_string: '<needle>', new_string: '<thread>' });
        expect(result.equals(expected)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test('Latin-1 bytes survive an edit of ASCII text', async () => {
    const content = Buffer.from('caf\xe9 one\n\xfcber two\n', 'latin1');
    const result = await edited(content, { old_string: 'two', new_string: '2' });
    expect(result.toString('latin1')).toBe('caf\xe9 one\n\xfcber 2\n');
  });

  test('a file that is not UTF-8 takes no other characters', async () => {
    const content = Buffer.from('caf\xe9\n', 'latin1');
    expect(await problemOf(content, { old_string: 'caf', new_string: 'é' })).toContain('is not UTF-8');
  });
});

describe('an edit that does not fit', () => {
  test.each<[title: string, content: string, old_string: string, problem: RegExp]>([
    [
      'line numbers',
      '\tone\n\ttwo\n',
      '     1\t\tone\n     2\t\ttwo',
      /holds the line numbers.*\n {5}1\t\tone\n {5}2\t\ttwo/,
    ],
    ['tabs for spaces', 'if x:\n\treturn 1\n', '    return 1', /indentation differs.*\n {5}2\t\treturn 1/],
    ['inner spaces', 'a =  1\n', 'a = 1', /spaces or tabs differ.*\n {5}1\ta = {2}1/],
    ['spaces at the end', 'a\nb\n', 'a \nb', /spaces at the end of a line differ/],
    ['curly quotes', 'say “hi” – now\n', 'say "hi" - now', /curly against straight/],
    ['case', 'Hello\n', 'hello', /upper and lower case differ/],
    ['composed letters', 'caf\u0065\u0301\n', 'caf\u00e9', /composed differently/],
    ['escapes', 'a\nb\n', 'a\\nb', /as two characters/],
    ['carriage returns', 'a\nb\n', 'a\r\nz', /carriage returns/],
    [
      'a changed middle line',
      'function a() {\n  return 1;\n}\nfunction b() {\n  return 2;\n}\n',
      'function b() {\n  return 3;\n}',
      /Most similar lines; the first that differs is line 5:\n {5}4\tfunction b/,
    ],
    ['nothing alike', 'a\n', 'completely different', /No line of the file is like it/],
  ])('%s: says what differs and shows the lines', async (_title, content, old_string, problem) => {
    expect(await problemOf(content, { old_string, new_string: 'new' })).toMatch(problem);
  });

  test('more than one place: says which lines, also when they overlap', async () => {
    expect(await problemOf('a\nb\na\n', { old_string: 'a', new_string: 'c' })).toMatch(
      /occurs 2 times .* lines 1, 3\./,
    );
    expect(await problemOf('aaa\n', { old_string: 'aa', new_string: 'c' })).toMatch(/occurs 2 times/);
  });

  test('nothing to change', async () => {
    expect(await problemOf('a\n', { old_string: 'a', new_string: 'a' })).toMatch(/are the same/);
    expect(await problemOf('a\r\nb', { old_string: 'a\nb', new_string: 'a\r\nb' })).toMatch(/changes nothing/);
  });
});

describe('what an agent must have seen', () => {
  const edit = { file_path: 'a.txt', old_string: 'a', new_string: 'b' };

  test('a file it has not read is refused', async () => {
    const agent = newAgent();
    agent.put('a.txt', 'a\n');
    await expect(agent.apply(editTool, edit)).rejects.toThrow(/You have not read/);
    await expect(agent.apply(editTool, { ...edit, file_path: 'gone' })).rejects.toThrow(/does not exist. Use write/);
  });

  test('a file changed by another agent is refused until it is read again', async () => {
    const agent = await seen('a\n');
    writeFileSync(agent.path('a.txt'), 'a\nmore\n');
    await expect(agent.apply(editTool, edit)).rejects.toThrow(/has changed since you read it/);
    agent.saw(await readTool.execute({ file_path: 'a.txt' }, agent.context));
    expect((await agent.apply(editTool, edit)).isError).toBe(false);
  });

  test('a part counts only of a file that cannot be shown whole', async () => {
    const agent = newAgent();
    agent.put('a.txt', 'a\nc\n');
    agent.saw(await readTool.execute({ file_path: 'a.txt', limit: 1 }, agent.context));
    await expect(agent.apply(editTool, edit)).rejects.toThrow(/only a part/);
    agent.put('a.txt', `a\n${'long enough\n'.repeat(9000)}`);
    agent.saw(await readTool.execute({ file_path: 'a.txt', limit: 1 }, agent.context));
    expect((await agent.apply(editTool, edit)).facts?.read?.whole).toBe(false);
  });

  test('its own edit counts as seen', async () => {
    const agent = await seen('a\n');
    await agent.apply(editTool, edit);
    await agent.apply(editTool, { ...edit, old_string: 'b', new_string: 'c' });
    expect(readFileSync(agent.path('a.txt'), 'utf8')).toBe('c\n');
  });
});

describe('the result of an edit', () => {
  test('counts lines and shows a diff that is true to the bytes', async () => {
    const agent = await seen('one\ntwo\nthree\n');
    const change = { file_path: 'a.txt', old_string: 'two', new_string: '2\n\t2b' };
    const result = await agent.apply(editTool, change);
    expect(result.text).toBe('edited a.txt (+2 −1)\n@@ -1 +1 @@\n one\n-two\n+2\n+\t2b\n three');
    expect(result.facts?.wrote).toMatchObject({ added: 2, removed: 1 });
  });

  test('stays small', async () => {
    const agent = await seen(`${'a line\n'.repeat(1500)}`);
    const change = { file_path: 'a.txt', old_string: 'a line', new_string: 'other', replace_all: true };
    const { text } = await agent.apply(editTool, change);
    expect(text).toMatch(/^edited a.txt \(\+1500 −1500, 1500 places\)/);
    expect(Buffer.byteLength(text)).toBeLessThan(5000);
  });
});

describe('links', () => {
  test('an edit through a link changes the target and keeps the link', async () => {
    const agent = await seen('a\n');
    symlinkSync('a.txt', agent.path('link'));
    await agent.apply(editTool, { file_path: 'link', old_string: 'a', new_string: 'b' });
    expect(lstatSync(agent.path('link')).isSymbolicLink()).toBe(true);
    expect(readFileSync(agent.path('a.txt'), 'utf8')).toBe('b\n');
  });

  test('of two hard links only the edited name gets the new content', async () => {
    const agent = await seen('a\n');
    linkSync(agent.path('a.txt'), agent.path('twin'));
    await agent.apply(editTool, { file_path: 'a.txt', old_string: 'a', new_string: 'b' });
    expect(readFileSync(agent.path('twin'), 'utf8')).toBe('a\n');
  });

  test('a file that may not be read tells nothing through an edit', async () => {
    const agent = newAgent({ layer: { deny: ['Read(**/.env)'] } });
    agent.put('.env', 'SECRET=1\n');
    const guess = { file_path: '.env', old_string: 'SECRE', new_string: 'x' };
    await expect(editTool.prepare(guess, agent.context)).rejects.toThrow(/Denied by the rule/);
    await expect(editTool.prepare(guess, agent.context)).rejects.not.toThrow(/SECRET/);
  });
});

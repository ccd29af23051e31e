import { createServer } from 'node:net';
import { mkdirSync, symlinkSync, truncateSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sha256 } from '../../src/tools/atomic-write.ts';
import { readTool } from '../../src/tools/read.ts';
import { MAX_RESULT_BYTES } from '../../src/tools/text.ts';
import type { TestAgent } from './tool-context.ts';
import { mkfifo, newAgent } from './tool-context.ts';
import { testTool } from './tool-contract.ts';

const longPath = `${'folder/'.repeat(30)}end.ts`;

testTool(readTool, {
  valid: [
    [{ file_path: 'a.ts' }, 'read a.ts'],
    [{ file_path: 'a\nb.ts', offset: 1, limit: 5 }, 'read a b.ts'],
    [{ file_path: longPath }, `read …${longPath.slice(-92)}`],
  ],
  invalid: [
    [{}, '- file_path: missing; expected string'],
    [{ file_path: 7 }, '- file_path: got 7; expected string'],
    [{ file_path: 'a', offset: 0 }, '- offset: got 0; expected at least 1'],
    [{ file_path: 'a', limit: '10' }, '- limit: got "10"; expected number'],
    [{ file_path: '' }, '- file_path: got ""; expected at least 1 characters'],
  ],
});

async function read(agent: TestAgent, file_path: string, window: { offset?: number; limit?: number } = {}) {
  return agent.saw(await readTool.execute({ file_path, ...window }, agent.context));
}

describe('what read shows', () => {
  test('numbers each line and keeps tabs', async () => {
    const agent = newAgent();
    const path = agent.put('a.txt', 'one\n\ttwo\n');
    const result = await read(agent, 'a.txt');
    expect(result.text).toBe('     1\tone\n     2\t\ttwo');
    expect(result.facts).toEqual({ read: { path, sha256: sha256(Buffer.from('one\n\ttwo\n')), whole: true } });
  });

  test('an offset and a limit give a part, which is not the whole', async () => {
    const agent = newAgent();
    agent.put('a.txt', 'a\nb\nc\nd\n');
    const result = await read(agent, 'a.txt', { offset: 2, limit: 2 });
    expect(result.text).toBe('     2\tb\n     3\tc\n\n[Lines 2 to 3 of 4. Go on with offset=4.]');
    expect(result.facts?.read?.whole).toBe(false);
    expect((await read(agent, 'a.txt', { limit: 4 })).facts?.read?.whole).toBe(true);
  });

  test.each([
    ['', {}, '[The file is empty.]'],
    ['a\nb\n', { offset: 9 }, '[Nothing at offset 9: the file has 2 lines.]'],
    ['a', {}, '     1\ta\n\n[The last line has no line end.]'],
    ['a\r\nb\r\n', {}, '     1\ta\n     2\tb\n\n[Line ends are CRLF.]'],
    ['a\r\nb\n', {}, '     1\ta\n     2\tb\n\n[Line ends are mixed: 1 CRLF and 1 LF.]'],
    ['\ufeffa\n', {}, '     1\ta'],
    ['a\x1b[31m\rb\n', {}, '     1\ta\\x1b[31m\\rb'],
    ['\n\n', {}, '     1\t\n     2\t'],
  ])('%j is shown as it should be', async (content, window, text) => {
    const agent = newAgent();
    agent.put('a.txt', content);
    expect((await read(agent, 'a.txt', window)).text).toBe(text);
  });

  test('a long line is cut on a character and makes the view partial', async () => {
    const agent = newAgent();
    agent.put('a.txt', `${'😀'.repeat(3000)}\nnext\n`);
    const { text, facts } = await read(agent, 'a.txt');
    expect(text).toContain(`${'😀'.repeat(2000)}… [cut: the line has 12000 bytes]`);
    expect(text).toContain('     2\tnext');
    expect(text).not.toContain('\ufffd');
    expect(facts?.read?.whole).toBe(false);
  });

  test('a long file stays below the cap and says how to go on, down to its end', async () => {
    const agent = newAgent();
    const lines = Array.from({ length: 3000 }, (_, index) => `line ${index + 1} ${'x'.repeat(90)}`);
    agent.put('a.txt', `${lines.join('\n')}\n`);
    const seen: string[] = [];
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const { text } = await read(agent, 'a.txt', { offset });
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_RESULT_BYTES);
      seen.push(...text.split('\n').flatMap((line) => /^ *\d+\t(.*)$/.exec(line)?.[1] ?? []));
      const next: string | undefined = /offset=(\d+)/.exec(text)?.[1];
      offset = next === undefined ? undefined : Number(next);
    }
    expect(seen).toEqual(lines);
  });

  test('bytes that are not UTF-8 are shown as bytes', async () => {
    const agent = newAgent();
    agent.put('a.txt', Buffer.from('caf\xe9\nplain\n', 'latin1'));
    const { text } = await read(agent, 'a.txt');
    expect(text).toContain('     1\tcaf\\xe9\n     2\tplain\n\n[Not UTF-8');
  });
});

describe('what read refuses', () => {
  test.each([
    ['text named .png is no image', 'a.png', Buffer.from('words\n'), undefined],
    ['an image named .txt', 'a.txt', Buffer.from('89504e470d0a1a0a0000', 'hex'), /a PNG image, 10 bytes/],
    ['a JPEG', 'a', Buffer.from('ffd8ffe0', 'hex'), /a JPEG image/],
    ['a PDF', 'a', Buffer.from('%PDF-1.7\n'), /a PDF document/],
    ['UTF-16', 'a', Buffer.from('\ufeffhi', 'utf16le'), /UTF-16 text \(little-endian\).*iconv/],
    ['a program', 'a', Buffer.from('7f454c460201010000', 'hex'), /a binary file, 9 bytes/],
    ['a NUL far into text', 'a', Buffer.from(`${'x'.repeat(100_000)}\0`), /a binary file, 97.7 kB/],
  ])('%s', async (_title, name, content, problem) => {
    const agent = newAgent();
    agent.put(name, content);
    if (problem === undefined) expect((await read(agent, name)).text).toContain('words');
    else await expect(read(agent, name)).rejects.toThrow(problem);
  });

  test('a folder, with a hint', async () => {
    const agent = newAgent();
    mkdirSync(agent.path('src'));
    await expect(read(agent, 'src')).rejects.toThrow(/not a regular file but a folder. Use glob/);
    await expect(read(agent, '.')).rejects.toThrow(/a folder/);
  });

  test.each(['gone.txt', 'no/such/folder/a.txt'])('%s, which does not exist', async (name) => {
    await expect(read(newAgent(), name)).rejects.toThrow(/does not exist/);
  });

  test('a FIFO, a socket and a device at once, also five at a time', async () => {
    const agent = newAgent();
    agent.put('a.txt', 'still here\n');
    mkfifo(agent.path('fifo'));
    const server = createServer().listen(agent.path('socket'));
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    symlinkSync('/dev/zero', agent.path('zero'));

    const reads = await Promise.allSettled(Array.from({ length: 5 }, () => read(agent, 'fifo')));
    for (const one of reads) {
      expect(one).toMatchObject({ reason: { message: "'fifo' is not a regular file but a FIFO." } });
    }
    await expect(read(agent, 'socket')).rejects.toThrow(/not a regular file but a socket/);
    await expect(read(agent, 'zero')).rejects.toThrow(/'\/dev\/zero', which is outside/);
    await expect(read(agent, '/dev/tty')).rejects.toThrow(/outside/);
    expect((await read(agent, 'a.txt')).text).toContain('still here');
  });

  test('what a rule denies, also through a link swapped in after the decision', async () => {
    const agent = newAgent({ layer: { deny: ['Read(**/.env)'] } });
    agent.put('.env', 'SECRET=1\n');
    symlinkSync('.env', agent.path('innocent'));
    await expect(read(agent, 'innocent')).rejects.toThrow(/Denied by the rule Read\(\*\*\/\.env\)/);
    expect(await readTool.actions({ file_path: 'innocent' }, agent.context)).toEqual([
      { tool: 'read', access: 'read', path: agent.path('.env') },
      { tool: 'read', access: 'read', path: agent.path('innocent') },
    ]);
  });
});

describe('a huge file', () => {
  test('of zeros is refused without being read', async () => {
    const agent = newAgent();
    truncateSync(agent.put('zeros', ''), 4 * 1024 ** 3);
    await expect(read(agent, 'zeros', { limit: 1 })).rejects.toThrow(/a binary file, 4.0 GB/);
  });

  test('of text is read in bounded memory and not for editing', async () => {
    const agent = newAgent();
    const line = `${'x'.repeat(99)}\n`;
    agent.put('big.txt', Buffer.alloc(64 * 1024 * 1024, line));
    const before = process.memoryUsage().rss;
    const result = await read(agent, 'big.txt', { offset: 600_000, limit: 2 });
    expect(result.text).toContain('600001\txxx');
    expect(result.text).toContain('Go on with offset=600002');
    expect(result.text).toContain('can be read in parts but not edited');
    expect(result.facts).toBeUndefined();
    expect(process.memoryUsage().rss - before).toBeLessThan(48 * 1024 * 1024);
    const past = await read(agent, 'big.txt', { offset: 1_000_000 });
    expect(past.text).toContain('Nothing at offset 1000000: the file has 671089 lines.');
  });

  test('is given up on abort', async () => {
    const agent = newAgent();
    agent.put('big.txt', Buffer.alloc(32 * 1024 * 1024, 'line\n'));
    const signal = AbortSignal.abort(new Error('stopped'));
    const context = { ...agent.context, signal };
    await expect(readTool.execute({ file_path: 'big.txt', offset: 9_000_000 }, context)).rejects.toThrow('stopped');
  });
});

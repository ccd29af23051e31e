import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashFile, replaceFile, sha256, StaleFileError } from '../../src/tools/atomic-write.ts';
import { freshFolder, mkfifo } from './tool-context.ts';

function hashOf(content: string): string {
  return sha256(Buffer.from(content));
}

function newFile(content = 'old'): { readonly folder: string; readonly path: string } {
  const folder = freshFolder();
  const path = join(folder, 'file');
  writeFileSync(path, content);
  return { folder, path };
}

function change(path: string, before: string | null, after: string) {
  return { path, content: Buffer.from(after), mode: 0o644, preSha256: before === null ? null : hashOf(before) };
}

describe('replacing a file', () => {
  test('puts the new content in place and leaves nothing else behind', async () => {
    const { folder, path } = newFile();
    await replaceFile(change(path, 'old', 'new'), [folder]);
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test('keeps the mode it is given and the owner', async () => {
    const { folder, path } = newFile();
    chmodSync(path, 0o640);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(path, 1234, 1234);
    await replaceFile({ ...change(path, 'old', 'new'), mode: 0o640 }, [folder]);
    const stat = statSync(path);
    expect(stat.mode & 0o7777).toBe(0o640);
    expect(stat.uid).toBe(isRoot ? 1234 : process.getuid?.());
  });

  test('is refused when the content is not what the change was computed from', async () => {
    const { folder, path } = newFile('other');
    const replacing = replaceFile(change(path, 'old', 'new'), [folder]);
    await expect(replacing).rejects.toThrow(StaleFileError);
    await expect(replacing).rejects.toMatchObject({
      path,
      expectedSha256: hashOf('old'),
      actualSha256: hashOf('other'),
    });
    await expect(replaceFile(change(path, null, 'new'), [folder])).rejects.toThrow(StaleFileError);
    await expect(replaceFile(change(join(folder, 'gone'), 'old', 'new'), [folder])).rejects.toThrow(StaleFileError);
    expect(readFileSync(path, 'utf8')).toBe('other');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test('of two that started from the same content one wins, and the other is told', async () => {
    const { folder, path } = newFile();
    const both = await Promise.allSettled(['a', 'b'].map((text) => replaceFile(change(path, 'old', text), [folder])));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({ reason: expect.any(StaleFileError) });
  });

  test('is refused when a link has come into the path since', async () => {
    const { folder } = newFile();
    mkdirSync(join(folder, 'other'));
    symlinkSync('other', join(folder, 'dir'));
    await expect(replaceFile(change(join(folder, 'dir/a'), null, 'new'), [folder])).rejects.toThrow(StaleFileError);
    symlinkSync('file', join(folder, 'link'));
    await expect(replaceFile(change(join(folder, 'link'), 'old', 'new'), [folder])).rejects.toThrow(StaleFileError);
    expect(readdirSync(join(folder, 'other'))).toEqual([]);
  });

  test('is refused for read-only, protected and outside files and for what is no file', async () => {
    const { folder, path } = newFile();
    chmodSync(path, 0o444);
    mkfifo(join(folder, 'fifo'));
    const replace = (name: string) => replaceFile(change(join(folder, name), null, 'new'), [folder]);
    await expect(replace('file')).rejects.toThrow(/is read-only \(mode 0444\)/);
    await expect(replace('fifo')).rejects.toThrow(/not a regular file but a FIFO/);
    await expect(replace('.git/hooks/post-commit')).rejects.toThrow(/read-only to every tool/);
    await expect(replace('../out')).rejects.toThrow(/outside the folders/);
  });

  test('makes folders only for a new file', async () => {
    const folder = freshFolder();
    await replaceFile(change(join(folder, 'x/y/z'), null, 'new'), [folder]);
    expect(readFileSync(join(folder, 'x/y/z'), 'utf8')).toBe('new');
    await expect(replaceFile(change(join(folder, 'p/q'), 'old', 'new'), [folder])).rejects.toThrow(/does not exist/);
    expect(readdirSync(folder)).toEqual(['x']);
  });
});

describe('a write that is cut short', () => {
  test('by a full disk gives ENOSPC, the old content, and no temporary file', async ({ skip }) => {
    const folder = freshFolder();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
    } catch {
      skip('a tmpfs cannot be mounted here');
    }
    onTestFinished(() => void execFileSync('umount', [folder]));
    const path = join(folder, 'file');
    writeFileSync(path, 'old');
    const full = replaceFile(change(path, 'old', 'x'.repeat(200_000)), [folder]);
    await expect(full).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(folder)).toEqual(['file']);
  });

  test('by SIGKILL leaves the old content, and the next write tidies up', async () => {
    const { folder, path } = newFile();
    const writer = await startWriter({ folder, path, before: 'old', size: 400_000_000 });
    await vi.waitUntil(() => tempSize(folder) > 1_000_000, { timeout: 5000, interval: 1 });
    writer.kill('SIGKILL');
    await once(writer, 'exit');
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(folder)).toHaveLength(2);
    await replaceFile(change(path, 'old', 'new'), [folder]);
    expect(readdirSync(folder)).toEqual(['file']);
  });
});

test('the hash of a file is that of its content, and null where there is none', async () => {
  const { folder, path } = newFile();
  expect(await hashFile(path, [folder])).toBe(hashOf('old'));
  expect(await hashFile(join(folder, 'gone'), [folder])).toBeNull();
  expect(await hashFile(join(folder, 'no/such/folder'), [folder])).toBeNull();
  await expect(hashFile('/etc/passwd', [folder])).rejects.toThrow(/outside/);
  mkfifo(join(folder, 'fifo'));
  await expect(hashFile(join(folder, 'fifo'), [folder])).rejects.toThrow(/a FIFO/);
});

function tempSize(folder: string): number {
  const temp = readdirSync(folder).find((name) => name.startsWith('.errand-'));
  return temp === undefined ? 0 : statSync(join(folder, temp)).size;
}

/** A worker process that replaces the file once it is told to: the module is bundled, since Node runs no TypeScript. */
async function startWriter(job: { folder: string; path: string; before: string; size: number }) {
  const outDir = freshFolder();
  const ssr = fileURLToPath(new URL('../../src/tools/atomic-write.ts', import.meta.url));
  const rollupOptions = { output: { entryFileNames: 'writer.mjs' } };
  await build({ configFile: false, logLevel: 'silent', build: { ssr, outDir, rollupOptions } });
  const script = `
    import { replaceFile } from ${JSON.stringify(join(outDir, 'writer.mjs'))};
    const content = Buffer.alloc(${job.size}, 'x');
    const change = { path: ${JSON.stringify(job.path)}, content, mode: 0o644, preSha256: '${hashOf(job.before)}' };
    await replaceFile(change, [${JSON.stringify(job.folder)}]);`;
  const writer = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
  onTestFinished(() => void writer.kill('SIGKILL'));
  return writer;
}

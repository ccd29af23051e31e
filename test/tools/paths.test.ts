import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openFile, openParent, realPathInside, shownPath } from '../../src/tools/paths.ts';
import type { PathScope } from '../../src/tools/walk.ts';
import { freshFolder } from './tool-context.ts';

function newScope(): PathScope & { readonly outside: string } {
  const outside = freshFolder();
  const workspace = join(outside, 'ws');
  mkdirSync(join(workspace, 'dir/deep'), { recursive: true });
  writeFileSync(join(workspace, 'a'), 'inside');
  writeFileSync(join(workspace, 'dir/b'), 'inside');
  writeFileSync(join(outside, 'secret'), 'outside');
  return { workspace, roots: [workspace], outside };
}

async function contentOf(path: string, scope: PathScope): Promise<string> {
  const { handle } = await openFile(path, scope);
  try {
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

describe('a path', () => {
  test.each(['a', './a', 'dir/../a', 'dir//../a', 'dir/deep/../../a', 'dir/./b'])('%s is inside', async (path) => {
    expect(await contentOf(path, newScope())).toBe('inside');
  });

  test('may be absolute', async () => {
    const scope = newScope();
    expect(await contentOf(join(scope.workspace, 'a'), scope)).toBe('inside');
    expect(await contentOf(`${scope.workspace}//dir/../a`, scope)).toBe('inside');
    expect(await contentOf(`${scope.workspace}/../ws/a`, scope)).toBe('inside');
  });

  test.each(['../secret', '/etc/passwd', 'dir/../../secret', '..', '/', '../wsx/a', 'a\0b'])(
    '%j is refused',
    async (path) => {
      const scope = newScope();
      mkdirSync(join(scope.outside, 'wsx'));
      writeFileSync(join(scope.outside, 'wsx/a'), 'outside');
      await expect(openFile(path, scope)).rejects.toThrow(/outside the folders you may use|NUL/);
    },
  );

  test('is refused with words for the model where there is no way', async () => {
    const scope = newScope();
    await expect(openFile('a/x', scope)).rejects.toThrow(/'.*\/a' is a file, not a folder/);
    await expect(openFile('no/../a', scope)).rejects.toThrow(/does not exist, so '..' below it leads nowhere/);
    await expect(openFile('x'.repeat(300), scope)).rejects.toThrow(/is too long/);
  });

  test('is shown relative in the workspace and absolute elsewhere', () => {
    expect(shownPath('/ws/a/b', '/ws')).toBe('a/b');
    expect(shownPath('/ws', '/ws')).toBe('.');
    expect(shownPath('/wsx/a', '/ws')).toBe('/wsx/a');
    expect(shownPath('/ws/..a', '/ws')).toBe('..a');
  });
});

describe('a link', () => {
  test.each([
    ['to a file', 'l', { l: 'a' }],
    ['to a folder, as parent', 'l/b', { l: 'dir' }],
    ['with dots', 'dir/l', { 'dir/l': '../a' }],
    ['chain', 'l1', { l1: 'l2', l2: 'dir/l3', 'dir/l3': '../a' }],
    ['dots after a link go up from where it leads', 'l/../b', { l: 'dir/deep' }],
    ['out and in again', 'l/ws/a', { l: '..' }],
  ])('that stays inside is followed: %s', async (_title, path, links) => {
    const scope = newScope();
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(scope.workspace, name));
    expect(await contentOf(path, scope)).toBe('inside');
  });

  test('may be absolute, or above the root', async () => {
    const scope = newScope();
    symlinkSync(join(scope.workspace, 'a'), join(scope.workspace, 'l'));
    symlinkSync(scope.workspace, join(scope.outside, 'way-in'));
    expect(await contentOf('l', scope)).toBe('inside');
    expect(await contentOf(join(scope.outside, 'way-in/a'), scope)).toBe('inside');
  });

  test.each([
    ['to a file', 'l', { l: '../secret' }],
    ['chain', 'l1', { l1: 'l2', l2: '../secret' }],
    ['as parent', 'l/secret', { l: '..' }],
    ['dots after a link', 'l/../../../secret', { l: 'dir/deep' }],
    ['absolute', 'l', { l: '/etc/passwd' }],
    ['as parent of a new file', 'l/new/file', { l: '..' }],
  ])('that leads out is refused and told where it leads: %s', async (_title, path, links) => {
    const scope = newScope();
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(scope.workspace, name));
    await expect(openFile(path, scope)).rejects.toThrow(/ leads to '[^']+', which is outside the folders/);
    await expect(openParent(path, scope, { createFolders: true })).rejects.toThrow(/ leads to /);
    expect(existsSync(join(scope.outside, 'new'))).toBe(false);
  });

  test('in a circle is refused', async () => {
    const scope = newScope();
    symlinkSync('l2', join(scope.workspace, 'l1'));
    symlinkSync('l1', join(scope.workspace, 'l2'));
    await expect(openFile('l1', scope)).rejects.toThrow(/more than 40 links/);
  });

  test('is reported under every name it had', async () => {
    const scope = newScope();
    symlinkSync('dir', join(scope.workspace, 'l'));
    const { realPath, aliases } = await realPathInside('l/new', scope);
    expect(realPath).toBe(join(scope.workspace, 'dir/new'));
    expect(aliases).toEqual([join(scope.workspace, 'l/new')]);
  });
});

test('two roots are both inside, and a root in a root is not entered by its own name', async () => {
  const scope = newScope();
  const second = freshFolder();
  writeFileSync(join(second, 'c'), 'inside');
  symlinkSync(join(second, 'c'), join(scope.workspace, 'l'));
  expect(await contentOf('l', { ...scope, roots: [...scope.roots, second] })).toBe('inside');

  const nested = join(scope.workspace, 'nested');
  symlinkSync(scope.outside, nested);
  const roots = [nested, scope.workspace];
  await expect(openFile(join(nested, 'secret'), { ...scope, roots })).rejects.toThrow(/leads to/);
});

test('no descriptor is left open, whatever happened', async () => {
  const scope = newScope();
  symlinkSync('../secret', join(scope.workspace, 'out'));
  symlinkSync('dir', join(scope.workspace, 'l'));
  const paths = ['a', 'l/b', 'out', 'dir', 'gone', 'no/x', 'a/x', '../secret', 'no/../x', 'x'.repeat(300)];
  const before = openDescriptors();
  for (const path of paths) {
    await openFile(path, scope).then(
      ({ handle }) => handle.close(),
      () => undefined,
    );
    await openParent(path, scope).then(
      ({ folder }) => folder.close(),
      () => undefined,
    );
    await realPathInside(path, scope).catch(() => undefined);
  }
  expect(openDescriptors()).toBe(before);
});

test('a folder that is swapped for a link out, over and over, never gives what is outside', async () => {
  const scope = newScope();
  mkdirSync(join(scope.outside, 'dir'));
  writeFileSync(join(scope.outside, 'dir/b'), 'outside');
  writeFileSync(join(scope.workspace, 'dir/target'), 'inside');
  const swapper = await startSwapper(scope);
  const seen = new Map<string, number>();
  const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
  for (const end = Date.now() + 1000; Date.now() < end;) {
    await Promise.all([contentOf('dir/b', scope), makeFile('dir/new', scope)]).then(
      ([content]) => count(content),
      () => count('refused'),
    );
  }
  swapper.kill('SIGKILL');
  expect(seen.get('outside')).toBeUndefined();
  expect(seen.get('inside')).toBeGreaterThan(0);
  expect(seen.get('refused')).toBeGreaterThan(0);
  expect(existsSync(join(scope.outside, 'dir/new'))).toBe(false);
});

async function makeFile(path: string, scope: PathScope): Promise<void> {
  const { folder, name } = await openParent(path, scope);
  try {
    writeFileSync(`/proc/self/fd/${folder.fd}/${name}`, '');
  } finally {
    await folder.close();
  }
}

/** Another process, as an agent's shell would be. */
async function startSwapper(scope: PathScope & { readonly outside: string }) {
  const script = `
    const fs = require('node:fs');
    process.chdir(${JSON.stringify(scope.workspace)});
    fs.symlinkSync(${JSON.stringify(join(scope.outside, 'dir'))}, 'out');
    console.log('ready');
    for (;;) {
      fs.renameSync('dir', 'kept'); fs.renameSync('out', 'dir');
      fs.renameSync('dir', 'out'); fs.renameSync('kept', 'dir');
    }`;
  const swapper = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void swapper.kill('SIGKILL'));
  await once(swapper.stdout, 'data');
  return swapper;
}

test('a file that is swapped for a link is opened or refused, and nothing hangs', async () => {
  const scope = newScope();
  const path = join(scope.workspace, 'a');
  for (let round = 0; round < 50; round++) {
    const reading = contentOf('a', scope).catch((error: Error) => error.message);
    renameSync(path, `${path}.kept`);
    symlinkSync('../secret', path);
    expect(await reading).toMatch(/inside|leads to|does not exist/);
    unlinkSync(path);
    renameSync(`${path}.kept`, path);
  }
});

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { diffSince, takeSnapshot, type SnapshotPlace } from '../../src/snapshot/snapshot.ts';

let folder: string;
let place: SnapshotPlace;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'errand-snapshot-'));
  place = { home: join(folder, 'home'), runId: 'run-abc123', workspace: join(folder, 'work'), env: process.env };
  mkdirSync(place.workspace);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(join(place.workspace, path, '..'), { recursive: true });
  writeFileSync(join(place.workspace, path), text);
}

function git(cwd: string, ...args: string[]): void {
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd, stdio: 'pipe' });
}

describe('a snapshot', () => {
  it('shows changed, new and deleted files in a folder without git', async () => {
    write('a.txt', 'one\n');
    write('gone.txt', 'old text\n');
    expect(await takeSnapshot(place)).toMatchObject({ taken: true });
    write('a.txt', 'two\n');
    write('dir/new file ä.txt', 'fresh\n');
    rmSync(join(place.workspace, 'gone.txt'));
    const diff = (await diffSince(place))?.text ?? '';
    expect(diff).toContain('-one\n+two\n');
    expect(diff).toContain('+++ b/dir/new file ä.txt');
    expect(diff).toContain('-old text');
    expect(existsSync(join(place.workspace, '.git'))).toBe(false);
  });

  it('is empty when nothing changed, and leaves no index behind', async () => {
    write('a.txt', 'one\n');
    await takeSnapshot(place);
    expect(await diffSince(place)).toEqual({ text: '', cut: false });
    const names = readdirSync(join(place.home, 'snapshots', place.runId));
    expect(names.filter((name) => name.startsWith('index'))).toEqual(['index']);
  });

  it('starts from uncommitted changes and leaves the own repository alone', async () => {
    git(place.workspace, 'init', '-q');
    write('a.txt', 'committed\n');
    git(place.workspace, 'add', '-A');
    git(place.workspace, 'commit', '-qm', 'first');
    write('a.txt', 'uncommitted\n');
    await takeSnapshot(place);
    git(place.workspace, 'commit', '-qam', 'the agent commits');
    write('a.txt', 'changed by the run\n');
    const diff = (await diffSince(place))?.text ?? '';
    expect(diff).toContain('-uncommitted\n+changed by the run\n');
    expect(diff).not.toContain('-committed');
  });

  it('leaves out ignored files and nested repositories, with or without commits', async () => {
    write('.gitignore', 'node_modules/\n');
    write('node_modules/x.js', 'x');
    git(place.workspace, 'init', '-q', 'nested [1]');
    git(place.workspace, 'init', '-q', 'later');
    write('later/in.txt', 'x');
    git(join(place.workspace, 'later'), 'add', '-A');
    git(join(place.workspace, 'later'), 'commit', '-qm', 'x');
    write('a.txt', 'a\n');
    expect(await takeSnapshot(place)).toMatchObject({ taken: true });
    write('node_modules/x.js', 'y');
    write('nested [1]/n.txt', 'n');
    write('later/in.txt', 'y');
    git(place.workspace, 'init', '-q', 'newer');
    write('newer/n.txt', 'n');
    write('b.txt', 'b\n');
    const diff = (await diffSince(place))?.text ?? '';
    expect(diff.match(/^diff --git .*$/gm)).toEqual(['diff --git a/b.txt b/b.txt']);
  });

  it('keeps bytes whatever .gitattributes says and runs no filter', async () => {
    const marker = join(folder, 'filter-ran');
    write('.gitattributes', '*.txt text eol=lf filter=evil\n');
    git(place.workspace, 'init', '-q');
    git(place.workspace, 'config', 'filter.evil.clean', `touch ${marker}; cat`);
    write('a.txt', 'one\r\n');
    await takeSnapshot(place);
    write('a.txt', 'one\n');
    expect((await diffSince(place))?.text).toContain('-one\r\n+one\n');
    expect(existsSync(marker)).toBe(false);
  });

  it('heeds no variable of a git that called errand', async () => {
    write('a.txt', 'one\n');
    const env = { ...process.env, GIT_DIR: '/nowhere', GIT_INDEX_FILE: '/nowhere', GIT_EXTERNAL_DIFF: 'false' };
    expect(await takeSnapshot({ ...place, env })).toMatchObject({ taken: true });
    write('a.txt', 'two\n');
    expect((await diffSince({ ...place, env }))?.text).toContain('+two');
  });

  it('follows a folder that became a file and a link that points nowhere', async () => {
    write('thing/a.txt', 'a\n');
    await takeSnapshot(place);
    rmSync(join(place.workspace, 'thing'), { recursive: true });
    write('thing', 'now a file\n');
    symlinkSync('/no/such/target', join(place.workspace, 'link'));
    const diff = (await diffSince(place))?.text ?? '';
    expect(diff).toContain('+now a file');
    expect(diff).toContain('+/no/such/target');
  });

  it('of an empty folder is taken', async () => {
    expect(await takeSnapshot(place)).toMatchObject({ taken: true });
    write('a.txt', 'a\n');
    expect((await diffSince(place))?.text).toContain('+a');
  });

  it('is for the owner only', async () => {
    write('a.txt', 'secret\n');
    await takeSnapshot(place);
    const modes = execFileSync('find', [place.home, '-perm', '/077'], { encoding: 'utf8' });
    expect(modes).toBe('');
  });

  it('is refused without git, and says so', async () => {
    const snapshot = await takeSnapshot({ ...place, env: { PATH: join(folder, 'empty') } });
    expect(snapshot).toEqual({ taken: false, reason: 'git is not installed' });
    expect(await diffSince(place)).toBeUndefined();
  });

  it.runIf(process.getuid?.() !== 0)('leaves out a file that cannot be read', async () => {
    write('a.txt', 'a\n');
    write('locked.txt', 'x\n');
    chmodSync(join(place.workspace, 'locked.txt'), 0);
    expect(await takeSnapshot(place)).toMatchObject({ taken: true });
  });

  it('is refused for more than 50,000 files', async () => {
    for (let i = 0; i < 50_001; i++) writeFileSync(join(place.workspace, `f${i}`), '');
    expect(await takeSnapshot(place)).toEqual({
      taken: false,
      reason: 'it has more than 50000 files that are not ignored',
    });
    expect(existsSync(join(place.home, 'snapshots', place.runId))).toBe(false);
  }, 60_000);
});

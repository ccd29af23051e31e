import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtProject, type MiniProject } from './mini-project.ts';

/** A project whose packages are not installed, and an npm that notes its calls and does what the script says. */
async function withNpm(script: string): Promise<MiniProject> {
  const project = (await builtProject()).withTools();
  rmSync(join(project.root, 'node_modules/.package-lock.json'));
  project.program('npm', `echo "$@" >> "${join(project.root, 'npm-calls')}"\n${script}`);
  return project;
}

function calls(project: MiniProject): number {
  const file = join(project.root, 'npm-calls');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0;
}

describe('the packages', () => {
  it('are installed once, with a cache inside the project', async () => {
    const project = await withNpm('exit 0');
    expect((await project.setUp()).code).toBe(0);
    expect((await project.setUp()).output).toBe('');
    expect(calls(project)).toBe(1);
    expect(project.read('npm-calls')).toContain(`ci --include=dev --no-audit --no-fund`);
    expect(project.read('npm-calls')).toContain(`--cache ${project.root}/.cache/npm`);
  });

  it('are installed anew when a dependency changed, but not for a changed script', async () => {
    const project = await withNpm('exit 0');
    await project.setUp();
    writeFileSync(join(project.root, 'node_modules/.package-lock.json'), '{ "packages": {} }');
    project.write('package.json', '{ "name": "mini", "type": "module", "scripts": { "x": "y" } }');
    await project.setUp();
    expect(calls(project)).toBe(1);
    project.write('package.json', '{ "name": "mini", "type": "module", "dependencies": { "zod": "1.0.0" } }');
    await project.setUp();
    expect(calls(project)).toBe(2);
  });

  it('that somebody installed by hand are taken as they are', async () => {
    const project = (await builtProject()).withTools();
    expect((await project.setUp()).code).toBe(0);
    expect(calls(project)).toBe(0);
  });

  it('are installed once by two set-ups at the same time', async () => {
    const project = await withNpm('sleep 0.5');
    const [one, two] = await Promise.all([project.setUp(), project.setUp()]);
    expect([one.code, two.code]).toEqual([0, 0]);
    expect(calls(project)).toBe(1);
    expect([...one.lines, ...two.lines].join('\n')).toMatch(/waiting for another set-up \(process \d+\)/);
  });

  it('are installed although an earlier set-up was killed', async () => {
    const project = await withNpm('exit 0');
    project.write('.cache/setup.lock', '999999999 1');
    expect((await project.setUp()).code).toBe(0);
  });

  it.each([
    [
      'offline',
      'echo "npm error code ENOTFOUND" >&2; exit 1',
      /the npm registry is not reachable \(ENOTFOUND\)\. Check the network/,
    ],
    ['on a full disk', 'echo "npm error code ENOSPC" >&2; exit 1', /no space left on the disk .*Free about 1 GB/],
    [
      'with a wrong hash',
      'echo "npm error code EINTEGRITY" >&2; exit 1',
      /does not have the hash that package-lock.json names/,
    ],
    [
      'out of step',
      'echo "npm error code EUSAGE" >&2; exit 1',
      /package.json and package-lock.json do not agree. Run "npm install"/,
    ],
    [
      'for another reason',
      'echo "npm error strange" >&2; exit 7',
      /npm ci failed with code 7: npm error strange. Run "npm ci"/,
    ],
  ])('fail %s with one message and code 2', async (_why, script, message) => {
    const { code, lines, output } = await (await withNpm(script)).setUp();
    expect(code).toBe(2);
    expect(lines).toHaveLength(2); // what it does, and why it failed
    expect(lines[1]).toMatch(message);
    expect(output).not.toMatch(/\n {4}at /);
  });

  it('need npm', async () => {
    const project = (await builtProject()).withTools();
    rmSync(join(project.root, 'node_modules/.package-lock.json'));
    const { code, lines } = await project.setUp();
    expect(code).toBe(2);
    expect(lines.at(-1)).toMatch(/npm was not found on PATH/);
  });
});

describe('Node', () => {
  it.each(['v18.20.4', 'v20.11.1'])('%s is refused with one message', async (version) => {
    const project = await builtProject();
    project.write('older.mjs', `Object.defineProperty(process, 'version', { value: '${version}' });`);
    const { code, output } = await project.setUp({ NODE_OPTIONS: `--import=${join(project.root, 'older.mjs')}` });
    expect(code).toBe(2);
    expect(output).toBe(
      `errand: this is Node ${version}, and errand needs 20.12 or newer. Install a current Node (nodejs.org, or ` +
        `"nvm install --lts") and run the same command again.\n`,
    );
  });
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isRunning } from '../helpers/processes.ts';
import { builtProject, MiniProject, runProgram } from './mini-project.ts';

describe('bin/errand', () => {
  it('sets up what is missing, then runs from any folder through links, with arguments and exit code', async () => {
    const project = new MiniProject().withTools();
    project.write(
      'src/cli/main.ts',
      "console.log(process.argv.slice(2).join('|'), process.cwd());\nprocess.exit(4);\n",
    );
    const elsewhere = join(project.root, 'else where');
    mkdirSync(elsewhere);
    symlinkSync(join(project.root, 'bin/errand'), join(project.root, 'first-link'));
    symlinkSync('../first-link', join(elsewhere, 'errand'));
    const { code, output } = await runProgram(
      join(elsewhere, 'errand'),
      ['run', 'a b', '--json'],
      project.environment(),
      elsewhere,
    );
    expect(code).toBe(4);
    expect(output).toBe(`errand: building ...\nrun|a b|--json ${elsewhere}\n`);
  });

  it('ends with the code of a set-up that failed', async () => {
    const project = new MiniProject();
    const { code } = await runProgram(
      join(project.root, 'bin/errand'),
      [],
      project.environment({ ERRAND_TEMPORAL_CLI: '/no' }),
      project.root,
    );
    expect(code).toBe(2);
  });
});

describe('npm start', () => {
  it.each([
    [[], "main [ 'demo' ]"],
    [['--slow'], "main [ 'demo', '--slow' ]"],
    [['--workspace', 'x', 'do it'], "main [ 'run', '--diff', '--workspace', 'x', 'do it' ]"],
  ])('with %j runs %s where npm was called from', async (args, expected) => {
    const project = (await builtProject()).withTools();
    const { code, output } = await project.run('scripts/start.mjs', args, { INIT_CWD: project.bin });
    expect(code).toBe(0);
    expect(output.split('\n').at(-2)).toBe(`${expected} ${project.bin}`);
  });

  it('ends with the code of the run, and passes a signal on to it', async () => {
    const project = new MiniProject().withTools();
    project.write(
      'src/cli/main.ts',
      "process.on('SIGTERM', () => process.exit(5));\nsetInterval(() => {}, 1000);\nconsole.log('up');\n",
    );
    const child = spawn(process.execPath, [join(project.root, 'scripts/start.mjs'), 'job'], {
      env: project.environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect((await once(child, 'exit'))[0]).toBe(5);
  });
});

describe('npm test', () => {
  const RESULTS = { numPassedTests: 7, numFailedTests: 0, numPendingTests: 1, testResults: [] };

  it('counts each check and each test, and passes when all did', async () => {
    const { code, output } = await (await withTests(RESULTS)).run('scripts/test.mjs');
    expect(output.trimEnd().split('\n').slice(-2)).toEqual(['1 skipped', '11 passed, 0 failed']);
    expect(code).toBe(0);
  });

  it.each([
    ['a check', { lint: 1 }, RESULTS, 0, '10 passed, 1 failed'],
    ['a test', {}, { ...RESULTS, numFailedTests: 2 }, 1, '11 passed, 2 failed'],
    [
      'a file that does not load',
      {},
      { ...RESULTS, testResults: [{ status: 'failed', assertionResults: [] }] },
      1,
      '11 passed, 1 failed',
    ],
    ['vitest itself', {}, undefined, 1, '4 passed, 1 failed'],
  ])('fails with %s', async (_what, checks, results, vitestCode, last) => {
    const { code, output } = await (
      await withTests(results, { ...checks, vitest: vitestCode })
    ).run('scripts/test.mjs');
    expect(output.trimEnd().split('\n').at(-1)).toBe(last);
    expect(code).toBe(1);
  });

  it('runs the tests in a home of their own, without the settings of the person', async () => {
    const project = await withTests(RESULTS);
    const settings = {
      ANTHROPIC_API_KEY: 'k',
      ERRAND_MODEL: 'm',
      TEMPORAL_NAMESPACE: 'n',
      ERRAND_HOME: '/mine',
      KEPT: '1',
    };
    await project.run('scripts/test.mjs', ['-t', 'one'], settings);
    const seen = JSON.parse(project.read('seen.json')) as { args: string[]; env: NodeJS.ProcessEnv };
    expect(seen.args.slice(-2)).toEqual(['-t', 'one']);
    expect(seen.env).toMatchObject({ KEPT: '1', ERRAND_HOME: join(project.root, '.test-home') });
    const leaked = Object.keys(seen.env).filter((name) => /^(ANTHROPIC|TEMPORAL|ERRAND)_/.test(name));
    expect(leaked.sort()).toEqual(['ERRAND_HOME', 'ERRAND_TEST_RUN']);
    expect(existsSync(join(project.root, '.test-home'))).toBe(false);
  });

  it.runIf(process.platform === 'linux')(
    'finds a process that the tests left running, fails and ends it',
    async () => {
      const project = await withTests(RESULTS, {}, true);
      const { code, output } = await project.run('scripts/test.mjs');
      expect(output).toMatch(/✗ left running:\n\d+ sleep 61/);
      expect(output.trimEnd().split('\n').at(-1)).toBe('10 passed, 1 failed');
      expect(code).toBe(1);
      const pid = Number(/(\d+) sleep 61/.exec(output)?.[1]);
      await expect.poll(() => isRunning(pid)).toBe(false);
    },
    30_000,
  );
});

/** Stand-ins for linter, formatter, type checker and vitest that end as told. */
async function withTests(
  results: unknown,
  codes: Record<string, number> = {},
  leavesProcess = false,
): Promise<MiniProject> {
  const project = (await builtProject()).withTools();
  const { lint = 0, vitest = 0 } = codes;
  rmSync(join(project.root, 'node_modules/typescript'));
  project.write('node_modules/typescript/bin/tsc', '');
  project.write('node_modules/eslint/bin/eslint.js', `process.exit(${lint});`);
  project.write('node_modules/prettier/bin/prettier.cjs', '');
  project.write('node_modules/vitest/vitest.mjs', fakeVitest(results, vitest, leavesProcess));
  return project;
}

function fakeVitest(results: unknown, code: number, leavesProcess: boolean): string {
  return `
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const file = process.argv.find((arg) => arg.startsWith('--outputFile.json=')).split('=')[1];
const results = ${JSON.stringify(results) ?? 'undefined'};
if (results) writeFileSync(file, JSON.stringify(results));
writeFileSync('seen.json', JSON.stringify({ args: process.argv, env: process.env }));
if (${leavesProcess}) spawn('sleep', ['61'], { detached: true, stdio: 'ignore' }).unref();
process.exit(${code});
`;
}

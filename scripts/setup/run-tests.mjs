import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { endLeftovers, markEnvironment } from './leftover-processes.mjs';
import { project, readJson, say } from './project.mjs';
import { run } from './run.mjs';
import { setUp } from './set-up.mjs';

const home = join(project.root, '.test-home');
const results = join(project.cache, 'test-results.json');

/** Everything that must hold, counted: each check is one, each test is one. Ends with the line `N passed, N failed`. */
export async function main(args) {
  await setUp();
  process.on('SIGINT', () => say('stopping after the tests that run'));
  const env = testEnvironment();
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { mode: 0o700 });
  const counts = [...(await runChecks(env)), await runVitest(args, env), await cleanUp(env)];
  const passed = sum(counts.map((count) => count.passed));
  const failed = sum(counts.map((count) => count.failed));
  const skipped = sum(counts.map((count) => count.skipped ?? 0));
  if (skipped > 0) console.log(`${skipped} skipped`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

// What the person has set for errand or Temporal must not decide how a test ends.
function testEnvironment() {
  const kept = ['ERRAND_TEMPORAL_CLI', 'ERRAND_BWRAP'];
  const own = Object.entries(process.env).filter(
    ([name]) => kept.includes(name) || !/^(TEMPORAL|ANTHROPIC|ERRAND)_/.test(name),
  );
  return markEnvironment({ ...Object.fromEntries(own), ERRAND_HOME: home });
}

function runChecks(env) {
  const script = (...path) => join(project.modules, ...path);
  return Promise.all([
    check('lint', [script('eslint', 'bin', 'eslint.js'), '.'], env),
    check('format', [script('prettier', 'bin', 'prettier.cjs'), '--check', '.'], env),
    check('types', [script('typescript', 'bin', 'tsc'), '--noEmit', '-p', 'tsconfig.json'], env),
  ]);
}

async function check(name, args, env) {
  const { code, output } = await run(process.execPath, args, { cwd: project.root, env });
  console.log(code === 0 ? `✓ ${name}` : `✗ ${name}\n${output.trimEnd()}\n`);
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

async function runVitest(args, env) {
  rmSync(results, { force: true });
  const vitest = join(project.modules, 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`];
  const { code } = await run(process.execPath, [vitest, 'run', ...reporters, ...args], {
    cwd: project.root,
    env,
    inherit: true,
  });
  const count = countTests(readJson(results));
  if (code === 0 || count.failed > 0) return count;
  console.log(`✗ vitest ended with code ${code}, though no test failed`);
  return { ...count, failed: 1 };
}

// A file that could not even be loaded has no test of its own to fail.
function countTests({
  numPassedTests = 0,
  numFailedTests = 0,
  numPendingTests = 0,
  numTodoTests = 0,
  testResults = [],
} = {}) {
  const broken = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
  );
  return { passed: numPassedTests, failed: numFailedTests + broken.length, skipped: numPendingTests + numTodoTests };
}

/** Stops the tests' server; whatever of them is still there then is a failure, and is ended. */
async function cleanUp(env) {
  const { stopServer } = await import(pathToFileURL(join(project.dist, 'server', 'index.js')).href);
  await stopServer({ home, log: say });
  const left = await endLeftovers(env);
  console.log(left.length === 0 ? '✓ nothing is left running' : `✗ left running:\n${left.join('\n')}`);
  rmSync(home, { recursive: true, force: true });
  return left.length === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

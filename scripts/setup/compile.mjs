import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { noSpace, saysNoSpace, SetupFailure } from './failure.mjs';
import { project, say } from './project.mjs';
import { run } from './run.mjs';

const next = join(project.root, '.dist-next');
const previous = join(project.root, '.dist-previous');
/** Inside dist, so that it can never belong to another one. */
const INPUTS = 'inputs';
const BUILD_ID = 'build-id';

/**
 * Compiles src to dist and bundles the workflows, only if sources changed. The new dist is made beside the old one and
 * takes its place whole: a worker that starts meanwhile never sees half of it.
 */
export async function compile() {
  const inputs = digest([...filesIn(project.source), ...configuration()]);
  if (existsSync(project.cli) && readIfThere(join(project.dist, INPUTS)) === inputs) return;
  say('building ...');
  rmSync(next, { recursive: true, force: true });
  await runTypeScript();
  await bundleWorkflows();
  writeFileSync(join(next, BUILD_ID), `${buildId()}\n`);
  writeFileSync(join(next, INPUTS), inputs);
  replaceDist();
}

function configuration() {
  const names = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'scripts/setup/compile.mjs'];
  return names.map((name) => join(project.root, name));
}

async function runTypeScript() {
  const tsc = join(project.modules, 'typescript', 'bin', 'tsc');
  const { code, output } = await run(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', next], {
    cwd: project.root,
  });
  if (code === 0) return;
  if (saysNoSpace(output)) throw noSpace(next);
  const errors = output.split('\n').filter((line) => /error TS\d+/.test(line));
  throw new SetupFailure(
    `the sources do not compile, ${errors.length} errors. The first: ${errors[0] ?? output.trim()}. Run "npm run types" to see all.`,
  );
}

// A worker would need more than a second to do this at each start.
async function bundleWorkflows() {
  const bundler = join(next, 'bundle.js');
  if (!existsSync(bundler)) return;
  const { code, output } = await run(process.execPath, [bundler], { cwd: project.root });
  if (code === 0) return;
  if (saysNoSpace(output)) throw noSpace(next);
  throw new SetupFailure(
    `the workflows could not be bundled:\n${output.trim()}\nWorkflow code may use no Node modules; see CONTRIBUTING.md.`,
  );
}

function buildId() {
  const files = filesIn(next).filter((file) => !file.endsWith('.map'));
  return digest(files, next).slice(0, 12);
}

function replaceDist() {
  rmSync(previous, { recursive: true, force: true });
  if (existsSync(project.dist)) renameSync(project.dist, previous);
  renameSync(next, project.dist);
  rmSync(previous, { recursive: true, force: true });
}

function digest(files, from = project.root) {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(`${relative(from, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

function filesIn(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  return files.sort();
}

function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

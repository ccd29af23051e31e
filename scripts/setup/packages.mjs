import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { noSpace, saysNoSpace, SetupFailure } from './failure.mjs';
import { project, readJson, say, writeJson } from './project.mjs';
import { run } from './run.mjs';

const stamp = join(project.modules, '.errand-install.json');

/** Installs the packages of package-lock.json, only if they changed since the last time. */
export async function installPackages() {
  const wanted = digestOfWishes();
  if (readJson(stamp)?.wanted === wanted) return;
  if (!isInstalled()) await npmCi();
  writeJson(stamp, { wanted });
}

// Packages that were built for another system do not count, so the system belongs to the wish.
function digestOfWishes() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  for (const file of [project.packageJson, project.packageLock]) hash.update(readFileSync(file));
  return hash.digest('hex');
}

// Installed by hand, or only a script in package.json changed: npm keeps a list of what it installed, and comparing it
// takes milliseconds where installing takes a quarter of a minute.
function isInstalled() {
  const lock = readJson(project.packageLock)?.packages ?? {};
  const installed = readJson(join(project.modules, '.package-lock.json'))?.packages;
  if (installed === undefined || !agreesWithPackageJson(lock[''])) return false;
  const names = Object.keys(lock).filter((name) => name !== '' && isNeeded(lock[name]));
  const strangers = Object.keys(installed).filter((name) => lock[name]?.integrity !== installed[name].integrity);
  return strangers.length === 0 && names.every((name) => installed[name]?.version === lock[name].version);
}

function agreesWithPackageJson(rootEntry = {}) {
  const { dependencies, devDependencies } = readJson(project.packageJson) ?? {};
  const text = (wishes) => JSON.stringify(Object.entries(wishes ?? {}).sort());
  return (
    text(dependencies) === text(rootEntry.dependencies) && text(devDependencies) === text(rootEntry.devDependencies)
  );
}

function isNeeded({ optional, os, cpu, libc }) {
  if (!optional) return true;
  return Boolean(os?.includes(process.platform) && cpu?.includes(process.arch) && !libc);
}

async function npmCi() {
  say('installing packages (npm ci) ...');
  const [program, ...args] = npm();
  const options = ['--include=dev', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error'];
  const where = ['--cache', project.npmCache, '--fetch-retry-mintimeout=2000'];
  const { code, isMissing, output } = await run(program, [...args, 'ci', ...options, ...where], { cwd: project.root });
  if (isMissing)
    throw new SetupFailure(
      'npm was not found on PATH. It comes with Node: install Node again from nodejs.org, then run the same command.',
    );
  if (code !== 0) throw npmFailure(code, output);
}

// The npm that runs this script, if one does.
function npm() {
  const running = process.env.npm_execpath;
  return running && basename(running) === 'npm-cli.js' ? [process.execPath, running] : ['npm'];
}

function npmFailure(code, output) {
  if (saysNoSpace(output)) return noSpace(project.modules);
  const errorCode = /code (E[A-Z_]+|UNABLE_TO\w+|CERT_\w+|SELF_SIGNED\w+)/.exec(output)?.[1];
  if (errorCode === 'EINTEGRITY') {
    return new SetupFailure(
      'a package does not have the hash that package-lock.json names (EINTEGRITY), so it was not installed. Check the registry (npm config get registry) and any proxy in between, then run the same command again.',
    );
  }
  if (errorCode === 'EUSAGE') {
    return new SetupFailure(
      'package.json and package-lock.json do not agree. Run "npm install" once, look at what it changes in package-lock.json, and run the same command again.',
    );
  }
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ENOTCACHED/.test(output)) {
    const reason = errorCode ?? 'no connection';
    return new SetupFailure(
      `the packages could not be downloaded: the npm registry is not reachable (${reason}). Check the network, the proxy and "npm config get registry", then run the same command again.`,
    );
  }
  const words = output
    .split('\n')
    .filter((line) => /error/i.test(line))
    .slice(0, 3)
    .join(' / ');
  return new SetupFailure(
    `npm ci failed with code ${code}: ${words || 'it said nothing'}. Run "npm ci" in ${project.root} to see all of it.`,
  );
}

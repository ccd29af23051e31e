import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const cache = join(root, '.cache');

/** Every place the set-up reads or writes; all of it inside the project. */
export const project = {
  root,
  cache,
  packageJson: join(root, 'package.json'),
  packageLock: join(root, 'package-lock.json'),
  modules: join(root, 'node_modules'),
  source: join(root, 'src'),
  dist: join(root, 'dist'),
  cli: join(root, 'dist', 'cli', 'main.js'),
  lock: join(cache, 'setup.lock'),
  npmCache: join(cache, 'npm'),
  binaries: join(cache, 'bin'),
  scratch: join(cache, 'tmp'),
  tools: join(cache, 'tools.json'),
};

/** One line about something that is being done; nothing is said when there is nothing to do. */
export function say(line) {
  console.error(`errand: ${line}`);
}

export function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Replaces a file in one step. */
export function writeJson(file, value) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.draft`, `${JSON.stringify(value, null, 2)}\n`);
  renameSync(`${file}.draft`, file);
}

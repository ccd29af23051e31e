import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SetupFailure } from './failure.mjs';
import { project, say } from './project.mjs';

const LONGEST_WAIT_MS = 15 * 60_000;

/** Runs a step while no other set-up of this project does. One that was killed does not count. */
export async function withLock(step) {
  mkdirSync(project.cache, { recursive: true });
  await take();
  try {
    return await step();
  } finally {
    rmSync(project.lock, { force: true });
  }
}

async function take() {
  const deadline = Date.now() + LONGEST_WAIT_MS;
  let hasSaid = false;
  while (!link()) {
    const holder = readIfThere(project.lock);
    if (holder !== undefined && !isAlive(holder)) removeStale(holder);
    else await sleep(100);
    if (Date.now() > deadline)
      throw new SetupFailure(
        `another set-up (${holder}) does not end. Delete ${project.lock} if it is not there any more.`,
      );
    if (!hasSaid && holder !== undefined && isAlive(holder))
      say(`waiting for another set-up (process ${holder.split(' ')[0]})`);
    hasSaid = true;
  }
}

// A link makes the file visible whole, and only one process can make it.
function link() {
  const draft = `${project.lock}.${process.pid}`;
  writeFileSync(draft, `${process.pid} ${startTime(process.pid)}`);
  try {
    linkSync(draft, project.lock);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function isAlive(holder) {
  const [pid, started] = holder.split(' ');
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if (error.code === 'ESRCH') return false;
  }
  return started === startTime(pid);
}

// Moved away rather than deleted: what was moved can be looked at, and put back if it was somebody's fresh lock.
function removeStale(seen) {
  const aside = `${project.lock}.stale.${process.pid}`;
  try {
    renameSync(project.lock, aside);
    if (readIfThere(aside) !== seen) linkSync(aside, project.lock);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  }
  rmSync(aside, { force: true });
}

// Field 22 of proc(5); where there is no such file the process number has to do.
function startTime(pid) {
  const stat = readIfThere(`/proc/${pid}/stat`);
  return stat === undefined ? 'unknown' : stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function readIfThere(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined;
    throw error;
  }
}

import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const MARK = 'ERRAND_TEST_RUN';
const GONE_WITHIN_MS = 5000;

/** An environment by which every process that inherits it can be found, however deep and however detached. */
export function markEnvironment(env) {
  return { ...env, [MARK]: randomUUID() };
}

/** Kills the processes that still carry the mark after a moment; tells which they were. */
export async function endLeftovers(env) {
  const mark = `${MARK}=${env[MARK]}`;
  const deadline = Date.now() + GONE_WITHIN_MS;
  while (marked(mark).length > 0 && Date.now() < deadline) await sleep(50);
  const pids = marked(mark);
  const lines = pids.map((pid) => `${pid} ${read(pid, 'cmdline').replaceAll('\0', ' ').trim().slice(0, 200)}`);
  for (const pid of pids) kill(pid);
  return lines;
}

// Only Linux lets us see; elsewhere nothing is found.
function marked(mark) {
  if (process.platform !== 'linux') return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => read(pid, 'environ').split('\0').includes(mark)).map(Number);
}

function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(error.code)) return '';
    throw error;
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';

/** What the processes of a job take at this moment. */
export interface JobUsage {
  readonly processes: number;
  /** Memory that only swapping or killing gives back: files that are merely cached do not count. */
  readonly memoryBytes: number;
}

/** Where the processes of a job are seen. */
export interface JobView {
  /** A proc file system. */
  readonly proc: string;
  /** Undefined: not there yet, or gone. */
  pids(): readonly number[] | undefined;
  /** Bytes that the job keeps in file systems in memory. */
  memoryFileBytes(): number;
}

/** A job in bubblewrap, looked at through the proc of its own PID namespace: nothing in it can hide from that. */
export function sandboxView(initPid: number, argv: readonly string[]): JobView {
  const root = `/proc/${initPid}/root`;
  const proc = `${root}/proc`;
  const mounts = argv.filter((_path, index) => ['--tmpfs', '--dev'].includes(argv[index - 1] ?? ''));
  return {
    proc,
    // Until bubblewrap has changed its root this is the proc of the host, with everybody in it.
    pids: () => (isOtherMount(proc, '/proc') ? listPids(proc).filter((pid) => pid !== 1) : undefined),
    memoryFileBytes: () =>
      sum(mounts.filter((path) => isOtherMount(root + path, path)).map((path) => usedBytes(root + path))),
  };
}

/** Measures a job; shared pages are told apart, which is dear, only when it seems to be over `exactAboveBytes`. */
export function measureUsage(view: JobView, exactAboveBytes: number): JobUsage | undefined {
  const pids = view.pids();
  if (pids === undefined) return undefined;
  const fileBytes = view.memoryFileBytes();
  // What is mapped of a file in memory is in both.
  const total = (parts: readonly Memory[]) =>
    sum(parts.map(({ anon }) => anon)) + Math.max(sum(parts.map(({ shared }) => shared)), fileBytes);
  const resident = pids.map((pid) => residentMemory(view.proc, pid));
  const bound = total(resident);
  if (bound <= exactAboveBytes) return { processes: pids.length, memoryBytes: bound };
  const exact = pids.map((pid, index) => proportionalMemory(view.proc, pid) ?? resident[index] ?? NO_MEMORY);
  return { processes: pids.length, memoryBytes: total(exact) };
}

/** So often the kernel has killed a process of this machine, or of this container, for want of memory. */
export function readOomKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(readIfThere('/proc/vmstat') ?? '')?.[1] ?? 0);
}

interface Memory {
  readonly anon: number;
  /** Shared memory and files in memory. */
  readonly shared: number;
}

const NO_MEMORY: Memory = { anon: 0, shared: 0 };

// Pages that a forked child still shares with its parent are in here once for each.
function residentMemory(proc: string, pid: number): Memory {
  const text = readIfThere(`${proc}/${pid}/status`) ?? '';
  return { anon: bytesAfter(text, 'RssAnon') ?? 0, shared: bytesAfter(text, 'RssShmem') ?? 0 };
}

// Each page divided by those who have it. The kernel walks all pages for it: 30 ms a GiB.
function proportionalMemory(proc: string, pid: number): Memory | undefined {
  const text = readIfThere(`${proc}/${pid}/smaps_rollup`) ?? '';
  const [anon, shared] = [bytesAfter(text, 'Pss_Anon'), bytesAfter(text, 'Pss_Shmem')];
  return anon === undefined || shared === undefined ? undefined : { anon, shared };
}

function bytesAfter(text: string, key: string): number | undefined {
  const kib = new RegExp(`^${key}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, next) => total + next, 0);
}

function isOtherMount(path: string, hostPath: string): boolean {
  const deviceOf = (place: string) => ifThere(() => statSync(place).dev);
  const device = deviceOf(path);
  return device !== undefined && device !== deviceOf(hostPath);
}

function usedBytes(path: string): number {
  const { blocks, bfree, bsize } = ifThere(() => statfsSync(path)) ?? { blocks: 0, bfree: 0, bsize: 0 };
  return (blocks - bfree) * bsize;
}

function listPids(proc: string): readonly number[] {
  return (ifThere(() => readdirSync(proc)) ?? []).map(Number).filter(Number.isInteger);
}

function readIfThere(path: string): string | undefined {
  return ifThere(() => readFileSync(path, 'latin1'));
}

// A process may end at any moment, or belong to somebody else.
function ifThere<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ENOTDIR', 'ESRCH', 'EACCES', 'EPERM'].includes(code)) return undefined;
    throw error;
  }
}

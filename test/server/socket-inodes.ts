import { readdirSync, readlinkSync } from 'node:fs';

/** Which sockets a process has, by the kernel's numbers for them. */
export function socketInodes(pid: number): Set<string> {
  const descriptors = readdirSync(`/proc/${pid}/fd`);
  const targets = descriptors.map((descriptor) => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
  return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
}

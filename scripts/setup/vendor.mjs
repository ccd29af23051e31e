import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { project, say } from './project.mjs';
import { run } from './run.mjs';
import { sha256 } from './sha256.mjs';

/**
 * Fetches a program from its vendor: the last resort. Only what has the pinned hash is taken, unless
 * ERRAND_ALLOW_UNPINNED=1 says that anything is. Returns `{ path }` or `{ problem }`.
 */
export async function fetchFromVendor(pin, platform) {
  const isUnpinnedAllowed = process.env.ERRAND_ALLOW_UNPINNED === '1';
  if (platform === undefined && !isUnpinnedAllowed) {
    return {
      problem: `the vendor's download is refused: no hash is pinned for ${process.platform}-${process.arch} (ERRAND_ALLOW_UNPINNED=1 takes it unchecked)`,
    };
  }
  say(`fetching ${pin.name} ${pin.version} from its vendor ...`);
  const scratch = join(project.scratch, `${pin.package}-vendor`);
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  try {
    const program = join(scratch, pin.program);
    const problem = await download(pin, scratch);
    if (problem !== undefined) return { problem };
    if (!isUnpinnedAllowed && sha256(program) !== platform.binary) {
      return {
        problem:
          "the vendor's download does not have the pinned hash and was thrown away (ERRAND_ALLOW_UNPINNED=1 takes it unchecked)",
      };
    }
    return { path: keep(pin, program) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function download(pin, scratch) {
  const archive = join(scratch, 'archive.tar.gz');
  const arch = { x64: 'amd64' }[process.arch] ?? process.arch;
  try {
    const response = await fetch(`${pin.vendor}?platform=${process.platform}&arch=${arch}`);
    if (!response.ok) return `the vendor's download answered ${response.status}`;
    writeFileSync(archive, Buffer.from(await response.arrayBuffer()));
  } catch (error) {
    if (error.code === 'ENOSPC') throw error;
    return `the vendor's download is not reachable (${error.cause?.code ?? error.cause?.message ?? error.message})`;
  }
  const { code } = await run('tar', ['-xzf', archive, '-C', scratch]);
  const isThere = code === 0 && existsSync(join(scratch, pin.program));
  return isThere ? undefined : "the vendor's download is not the archive that was expected";
}

function keep(pin, program) {
  const folder = join(project.binaries, `${pin.program}-${pin.version}-vendor`);
  mkdirSync(folder, { recursive: true });
  chmodSync(program, 0o755);
  renameSync(program, join(folder, pin.program));
  return join(folder, pin.program);
}

import { rmSync } from 'node:fs';
import { compile } from './compile.mjs';
import { withLock } from './lock.mjs';
import { installPackages } from './packages.mjs';
import { project } from './project.mjs';
import { findTools } from './tools.mjs';

/** Everything that running errand needs, quick where nothing changed. Throws SetupFailure. */
export async function setUp({ needsTemporal = true } = {}) {
  await withLock(async () => {
    await installPackages();
    await compile();
    await findTools({ needsTemporal });
    rmSync(project.scratch, { recursive: true, force: true });
  });
}

/** Packages and build alone. */
export async function build() {
  await withLock(async () => {
    await installPackages();
    await compile();
  });
}

/** With a server of one's own there is nothing to start, so no Temporal CLI is missed. */
export function needsTemporal(env = process.env) {
  return !env.TEMPORAL_ADDRESS && !env.TEMPORAL_PROFILE;
}

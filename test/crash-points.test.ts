import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildPrograms, freshFolder } from './jobs/supervisor-program.ts';

describe('crash points', () => {
  let program: string;
  let folder: string;

  beforeAll(async () => {
    const source = fileURLToPath(new URL('helpers/reach-point.ts', import.meta.url));
    program = (await buildPrograms({ reach: source })).reach;
  });

  beforeEach(() => {
    folder = freshFolder('errand-crash-');
  });

  it('do nothing and leave nothing without the variable', () => {
    writeFileSync(join(folder, 'keep.after'), '1');
    expect(reach('keep.after', 3, {})).toEqual({ lived: ['1', '2', '3'], signal: null });
    expect(readdirSync(folder)).toEqual(['keep.after']);
  });

  it('are only counted where none is armed', () => {
    expect(reach('keep.after', 3)).toEqual({ lived: ['1', '2', '3'], signal: null });
    expect(readFileSync(join(folder, 'keep.after.reached'), 'utf8')).toBe('...');
  });

  it('kill the process that comes to an armed one as the so-many-th of all processes, once', () => {
    writeFileSync(join(folder, 'keep.after'), '5');
    expect(reach('keep.after', 3)).toEqual({ lived: ['1', '2', '3'], signal: null });
    expect(reach('keep.after', 3)).toEqual({ lived: ['1'], signal: 'SIGKILL' });
    expect(reach('keep.after', 3)).toEqual({ lived: ['1', '2', '3'], signal: null });
    expect(existsSync(join(folder, 'keep.after.taken'))).toBe(true);
  });

  it('leave a process alone that comes to another one', () => {
    writeFileSync(join(folder, 'keep.after'), '1');
    expect(reach('keep.before', 2)).toEqual({ lived: ['1', '2'], signal: null });
  });

  function reach(point: string, times: number, env: NodeJS.ProcessEnv = { ERRAND_CRASH_AT: folder }) {
    const { stdout, signal } = spawnSync(process.execPath, [program, point, String(times)], { env, encoding: 'utf8' });
    return { lived: stdout.split('\n').filter(Boolean), signal };
  }
});

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandName } from '../../src/cli/command-name.ts';
import { loadConfig } from '../../src/config.ts';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'errand-name-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('what a person types to call this errand', () => {
  const config = loadConfig({ env: { HOME: '/nowhere' } });
  const own = join(config.project, 'bin', 'errand');

  it('is its path while PATH does not have it, or has another one', () => {
    expect(commandName(config, { PATH: folder })).toBe(own);
    expect(commandName(config, {})).toBe(own);
    writeFileSync(join(folder, 'errand'), '');
    expect(commandName(config, { PATH: folder })).toBe(own);
  });

  it('is its name once PATH leads to it', () => {
    mkdirSync(join(folder, 'bin'));
    symlinkSync(own, join(folder, 'bin', 'errand'));
    expect(commandName(config, { PATH: `/bin:${join(folder, 'bin')}` })).toBe('errand');
  });
});

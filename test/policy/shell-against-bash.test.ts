import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandSpellings, isAllowedCommand, parseCommandPattern } from '../../src/policy/command-rules.ts';

/** What shells give a meaning to, thrown together at random. No wildcards: a file called `bad` would make them commands. */
const PIECES = [
  ...['ok', 'ok', 'bad', 'bad', ' ', ' ', ' ', ' ', '\t', '\n', '\r', ';', '&&', '||', '|', '&', '|&', '(', ')', '{ '],
  ...['; }', '$(', '`', '"', "'", "$'", '\\', '<', '>', '>>', '2>&1', '&>', '<<E\n', '\nE\n', '<<<', '<(', '#', '$'],
  ...['${x:-', '}', '$((', '((', '))', 'x', 'y=1 ', '=', '~', '{a,b}', 'if ', '; then ', '; fi', '! ', 'eval '],
  ...['case a in a)', ';; esac', 'f()', 'time ', '[[ '],
];
const anyCommand = fc.array(fc.constantFrom(...PIECES), { maxLength: 9 }).map((pieces) => `ok ${pieces.join('')}`);

/** `ok` does nothing, `bad` and every unknown command say so on descriptor 3; there are no other programs. */
const PRELUDE = `ok() { :; }; bad() { builtin echo bad >&3; }
command_not_found_handle() { builtin echo "other $1" >&3; }
PATH=/nowhere; eval "$1"`;

/** Fixed: a variable that holds a command's name is beyond the reader, and chance would write one some day. */
const SEED = 20_261_130;

const matchesOk = parseCommandPattern('ok:*');
const matchesBad = parseCommandPattern('bad:*');

describe('the command reader, compared with what bash runs', () => {
  let folder = '';

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'errand-shell-'));
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  function ranByBash(command: string): string {
    const options = { cwd: folder, input: '', timeout: 5_000, stdio: ['pipe', 'ignore', 'ignore', 'pipe'] as const };
    return String(
      spawnSync('bash', ['--norc', '-c', PRELUDE, 'bash', command], { ...options, stdio: [...options.stdio] })
        .output?.[3] ?? '',
    );
  }

  it('sees this bash run what it should', () => {
    expect(ranByBash('ok; bad; $(nosuch)')).toBe('bad\nother nosuch\n');
  });

  it('allows nothing by a rule for one command that runs another or writes a file', async () => {
    await fc.assert(
      fc.asyncProperty(anyCommand, async (command) => {
        fc.pre(isAllowedCommand(command, [matchesOk]));
        expect({ ran: ranByBash(command), wrote: await readdir(folder) }).toEqual({ ran: '', wrote: [] });
      }),
      { numRuns: 150, seed: SEED },
    );
  });

  it('misses no command that is written out', () => {
    fc.assert(
      fc.property(anyCommand, (command) => {
        const spellings = commandSpellings(command);
        fc.pre(command.includes('bad') && spellings !== undefined && !spellings.some(matchesBad));
        expect(ranByBash(command).split('\n')).not.toContain('bad');
      }),
      { numRuns: 150, seed: SEED },
    );
  });
});

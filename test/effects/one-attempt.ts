import { argv, stdout } from 'node:process';
import { openCallJournal } from '../../src/effects/journal.ts';
import { runCall } from '../../src/effects/run-call.ts';
import { appendTool, commandTool, dyingJournal, testRun } from './call-fixture.ts';

// One attempt at a call in a process of its own, for tests that kill it. The argument is JSON.
interface Attempt {
  readonly folder: string;
  readonly workspace: string;
  readonly line?: string;
  readonly size?: number;
  readonly path?: string;
  readonly command?: string;
  readonly supervisorPath?: string;
  /** What the server says when it is asked. */
  readonly isStale?: boolean;
  /** Where to die. */
  readonly step?: string;
}

const {
  folder,
  workspace,
  command,
  supervisorPath,
  isStale = false,
  step = '',
  ...input
} = JSON.parse(argv[2] ?? '') as Attempt;
const tool = command === undefined ? appendTool : commandTool;
const run = testRun({ folder, workspace, tool, input: command === undefined ? input : { command } });
const env = { PATH: process.env['PATH'] ?? '' };
const result = await runCall({
  ...run,
  journal: dyingJournal(openCallJournal(folder), step),
  mayAct: async () => !isStale,
  planSandbox: async () => ({ kind: 'none', env }),
  jobs: { supervisorPath, pollMs: 20 },
});
stdout.write(JSON.stringify(result));

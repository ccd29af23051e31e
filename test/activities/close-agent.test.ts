import { existsSync } from 'node:fs';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { closeAgent } from '../../src/activities/close-agent.ts';
import type { ActivityDeps } from '../../src/activities/deps.ts';
import { callFolder } from '../../src/effects/journal.ts';
import { claimJob, hasJob, jobFiles } from '../../src/jobs/job-folder.ts';
import { DEFAULT_CAPS } from '../../src/jobs/start-or-attach.ts';
import { defaultCeiling } from '../../src/policy/defaults.ts';
import { transcriptFile } from '../../src/store/layout.ts';
import { openTranscript } from '../../src/store/transcript.ts';
import { ROOT, freshFolder, reply, session, user } from '../store/fixtures.ts';

it('a turn that a lost message began is gone on with, and the command that it runs is left alone', async () => {
  const home = freshFolder();
  const ref = { ...ROOT, epoch: 0, branch: '' };
  const transcript = await openTranscript(transcriptFile(home, ROOT), { create: true });
  const steered = { ...user({ turn: 2 }, 'one thing more'), steering: ['m1'] };
  await transcript.appendAll([session(), user({ turn: 1 }), reply({ turn: 1 }), steered, reply({ turn: 2 })]);
  const call = callFolder(home, ref, 't2.0');
  const sandbox = { kind: 'none', env: {} } as const;
  await claimJob(call, { command: 'sleep 60', cwd: '/', timeoutMs: 60_000, caps: DEFAULT_CAPS, sandbox });

  const closing = await inActivity(() => closeAgent(depsIn(home), { ref, status: 'completed', turn: 1 }));

  expect(closing).toEqual({ goesOn: true });
  expect(hasJob(call)).toBe(true);
  expect(existsSync(jobFiles(call).cancel)).toBe(false);
  expect(existsSync(jobFiles(call).exit)).toBe(false);
});

function depsIn(home: string): ActivityDeps {
  const ceiling = defaultCeiling({ errandHome: home });
  return { home, ceiling, handOver: new AbortController().signal, log: pino({ enabled: false }) } as ActivityDeps;
}

/** As far as an activity that is never doubted looks at where it runs. */
function inActivity<Result>(work: () => Promise<Result>): Promise<Result> {
  const workflowExecution = { workflowId: ROOT.runId, runId: 'run-1' };
  const context = {
    info: { workflowExecution, activityId: 'close', attempt: 1, currentAttemptScheduledTimestampMs: Date.now() },
    cancellationSignal: new AbortController().signal,
    heartbeat: () => undefined,
  };
  return asyncLocalStorage.run(context as unknown as Context, work);
}

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { agentFolder } from '../../src/effects/journal.ts';
import { listOpenJobs } from '../../src/jobs/cancel-job.ts';
import { journalRoot } from '../../src/store/layout.ts';
import type { Agent } from './agents.ts';
import { processesOf } from './processes.ts';
import type { JobRun } from './run.ts';
import { orphan } from './violation.ts';
import type { Violation } from './violation.ts';
import type { World } from './world.ts';

/** Processes, jobs and claims that an ended run should not have. */
export async function leftovers(world: World, run: JobRun, agents: readonly Agent[]): Promise<Violation[]> {
  const processes = [...processesOf(run.workspace), ...processesOf(join(journalRoot(world.home), run.runId))];
  const jobs = (await listOpenJobs(journalRoot(world.home))).filter(({ runId }) => runId === run.runId);
  const claims = agents.flatMap(({ meta }) => openClaims(agentFolder(world.home, { ...run, agentId: meta.agentId })));
  return [
    ...processes.map(({ pid, command }) => orphan(`process ${pid}: ${command.slice(0, 160)}`)),
    ...jobs.map(({ folder }) => orphan(`open job ${folder}`)),
    ...claims.map((folder) => orphan(`claimed without a result: ${folder}`)),
  ];
}

function openClaims(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((call) => existsSync(join(call, 'claim.json')) || existsSync(join(call, 'job')))
    .filter((call) => !existsSync(join(call, 'result.json')));
}

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { agentFolder, scratchFolder } from '../../src/effects/journal.ts';
import { listOpenJobs } from '../../src/jobs/cancel-job.ts';
import { homeId } from '../../src/home.ts';
import { taskQueue } from '../../src/protocol.ts';
import { findDisagreements } from '../../src/reconcile/disagreements.ts';
import { nameServer } from '../../src/reconcile/fate.ts';
import { findLeftovers } from '../../src/reconcile/leftovers.ts';
import { journalRoot } from '../../src/store/layout.ts';
import type { Agent } from './agents.ts';
import { processesOf } from './processes.ts';
import type { JobRun } from './run.ts';
import { orphan, untrue } from './violation.ts';
import type { Violation } from './violation.ts';
import type { World } from './world.ts';

/** Processes, jobs and claims that an ended run should not have. */
export async function leftovers(world: World, run: JobRun, agents: readonly Agent[]): Promise<Violation[]> {
  const processes = [...processesOf(run.workspace), ...processesOf(join(journalRoot(world.home), run.runId))];
  const jobs = (await listOpenJobs(journalRoot(world.home))).filter(({ runId }) => runId === run.runId);
  // A stop comes between a claim and its result; the seal has said so then.
  const isWhole = agents.filter(({ meta }) => meta.status !== 'cancelled');
  const claims = isWhole.flatMap(({ meta }) => openClaims(agentFolder(world.home, { ...run, agentId: meta.agentId })));
  const scratch = agents.map(({ meta }) => scratchFolder(world.home, { ...run, agentId: meta.agentId }));
  return [
    ...processes.map(({ pid, command }) => orphan(`process ${pid}: ${command.slice(0, 160)}`)),
    ...jobs.map(({ folder }) => orphan(`open job ${folder}`)),
    ...claims.map((folder) => orphan(`claimed without a result: ${folder}`)),
    ...scratch.filter((folder) => existsSync(folder)).map((folder) => orphan(`scratch of an ended agent: ${folder}`)),
  ];
}

/** What `errand doctor` finds in a home whose runs have all ended, the unfinished writes of the dead apart. */
export async function doctorProblems({ home, temporal }: World): Promise<Violation[]> {
  const server = await nameServer(temporal.client, temporal.namespace);
  const disagreements = await findDisagreements({ home, queue: taskQueue(homeId(home)), server });
  const left = (await findLeftovers(home)).filter(({ kind }) => kind !== 'temporary');
  return [
    ...disagreements.map(({ what, problem }) => untrue(`doctor: ${what}: ${problem}`)),
    ...left.map(({ kind, path, note }) => orphan(`doctor: ${kind} ${path}: ${note}`)),
  ];
}

function openClaims(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((call) => existsSync(join(call, 'claim.json')) || existsSync(join(call, 'job')))
    .filter((call) => !existsSync(join(call, 'result.json')));
}

import { existsSync } from 'node:fs';
import { connect, isUnreachable } from '../client.ts';
import type { Config } from '../config.ts';
import { homeId, homePaths } from '../home.ts';
import { taskQueue } from '../protocol.ts';
import { findDisagreements, type Disagreement } from '../reconcile/disagreements.ts';
import { nameServer, type NamedServer } from '../reconcile/fate.ts';
import { cleanLeftovers, findLeftovers, type CleanedLeftover } from '../reconcile/leftovers.ts';
import { runningAddress } from './running-address.ts';

/** What is wrong with the files of a home, and what is left over in it. */
export interface HomeFindings {
  readonly disagreements: readonly Disagreement[];
  readonly leftovers: readonly CleanedLeftover[];
  readonly isCleaned: boolean;
}

/** Compares the home's files with each other and, where it can be reached, with the server; `clean` removes leftovers. */
export async function lookAtHome(config: Config, clean: boolean): Promise<HomeFindings> {
  const home = config.home.value;
  // Without an id nothing has ever run here, and looking must not make one.
  if (!existsSync(homePaths(home).homeIdFile)) return { disagreements: [], leftovers: [], isCleaned: false };
  const { disagreements, leftovers } = await withServer(config, async (server) => ({
    disagreements: await findDisagreements({ home, queue: taskQueue(homeId(home)), ...(server && { server }) }),
    leftovers: await findLeftovers(home, server),
  }));
  return { disagreements, leftovers: clean ? await cleanLeftovers(home, leftovers) : leftovers, isCleaned: clean };
}

/** The same for people. */
export function homeLines({ disagreements, leftovers, isCleaned }: HomeFindings): readonly string[] {
  const told = leftovers.map(({ kind, path, note, problem }) => {
    const state = problem !== undefined ? `NOT REMOVED (${problem})` : isCleaned ? 'removed' : 'left over';
    return `${state}: ${kind} ${JSON.stringify(path)}: ${note}`;
  });
  const hint = leftovers.length > 0 && !isCleaned ? ['errand doctor --clean removes what is left over.'] : [];
  const lines = [...disagreements.flatMap(({ what, problem, next }) => [`${what}: ${problem}`, `        ${next}`])];
  return [...lines, ...told, ...hint];
}

/** Without a server where none can be reached, or where it goes away meanwhile. */
async function withServer<Found>(config: Config, look: (server?: NamedServer) => Promise<Found>): Promise<Found> {
  try {
    const { client, namespace, close } = await connect(config.temporal, await runningAddress(config));
    try {
      return await look(await nameServer(client, namespace));
    } finally {
      await close();
    }
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    return look();
  }
}

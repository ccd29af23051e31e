import { connect, findUnopened, isUnreachable, type UnopenedRun } from '../client.ts';
import type { Config } from '../config.ts';
import { CliError } from './cli-error.ts';
import { assertOwnQueue } from './own-run.ts';
import { runningAddress } from './running-address.ts';

/** A run without a file: no worker has taken it up yet, and only its whole id finds it. */
export interface Unfound {
  readonly name: string;
  /** Why the files have none. */
  readonly problem: string;
}

/** A name that may just be a wrong one is not waited for long. */
const ASK_MS = 3_000;

/** Asks a server that runs already; starts none, since the name may just be a wrong one. */
export async function lookUpUnopened(config: Config, { name, problem }: Unfound): Promise<UnopenedRun> {
  try {
    const { client, close } = await connect(config.temporal, await runningAddress(config));
    const ask = () => findUnopened(client, name);
    const found = await client.withDeadline(Date.now() + ASK_MS, ask).finally(close);
    if (found) {
      assertOwnQueue(config, name, found.queue);
      return found;
    }
  } catch (error) {
    if (!isUnreachable(error)) throw error;
  }
  throw new CliError(problem);
}

/** What there is to say of it. */
export function unopenedWords({ status }: UnopenedRun): string {
  if (status === 'running') return 'no worker has taken it yet; errand up starts workers, errand cancel ends it';
  return `${status} before a worker had taken it; there is no transcript`;
}

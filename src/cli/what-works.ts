import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { serverStatus, type InstanceStatus, type ProcessStatus } from '../server/index.ts';

/** Where to ask about unfinished runs, or why nothing can be at work on them. */
export type WhatWorks = { readonly address: string } | { readonly nothing: string };

/** What works on this home's runs, by its files and the process table alone: asks nobody and starts nothing. */
export async function whatWorks({ home, temporal }: Config): Promise<WhatWorks> {
  if (temporal.address.value !== undefined) return { address: temporal.address.value };
  const { instances } = await serverStatus({ home: resolve(home.value) });
  const embedded = instances.find((instance) => instance.embedded);
  return embedded === undefined ? NOTHING : whatWorksIn(embedded);
}

/** Words of the command that goes on with what stands still. */
const GOES_ON = 'errand up goes on with it';
const NOTHING: WhatWorks = { nothing: `nothing runs; ${GOES_ON}` };

function whatWorksIn({ running, address, temporal, workers }: InstanceStatus): WhatWorks {
  const hasServer = lives(temporal);
  const hasWorkers = workers.some(lives);
  // A supervisor that lives brings back what is down.
  if (running && address !== undefined) return { address };
  if (running) return { nothing: 'the server is being started' };
  if (!hasServer && !hasWorkers) return NOTHING;
  if (!hasServer) return { nothing: `the Temporal server does not run; ${GOES_ON}` };
  if (!hasWorkers) return { nothing: `no worker runs; ${GOES_ON}` };
  return address === undefined ? NOTHING : { address };
}

function lives(process: ProcessStatus | undefined): boolean {
  return process?.pid !== undefined;
}

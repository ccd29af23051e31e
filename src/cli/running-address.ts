import type { Config } from '../config.ts';
import { serverStatus } from '../server/index.ts';

/** Where the server is that runs now; undefined when none does. Nothing is started. */
export async function runningAddress({ home, temporal }: Config): Promise<string | undefined> {
  if (temporal.server === 'external') return temporal.address.value;
  const { instances } = await serverStatus({ home: home.value });
  return instances.find(({ embedded, running }) => embedded && running)?.address ?? temporal.address.value;
}

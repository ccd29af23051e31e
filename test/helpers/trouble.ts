import { describePending } from '../../src/client.ts';
import type { Harness, Run } from './harness.ts';
import { waitFor } from './wait.ts';

/** The line that says what a run waits for. On a busy machine a step may first wait for a worker: that is not it. */
export function toldTrouble(harness: Harness, run: Run): Promise<string> {
  const look = async () => {
    const words = await describePending(harness.client, run.runId, new Date());
    return words?.startsWith('no worker has taken') ? undefined : words;
  };
  return waitFor('the trouble to be told', look, 60_000);
}

import { activities, reconcileOptions } from './proxies.ts';

/**
 * Started by a worker that found agents whose workflows are closed and whose transcripts are not. A workflow, so that
 * one does it at a time, a full disk is waited out, and the UI shows that it was done.
 */
export async function reconcile(): Promise<readonly string[]> {
  return activities.reconcile.executeWithOptions(reconcileOptions(), []);
}

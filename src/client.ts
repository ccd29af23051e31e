/** The only user of the Temporal client on this side: start, watch, stop and talk to runs. */
export { connect, isUnreachable, ServerUnreachable, type TemporalClient } from './client/connection.ts';
export { awaitResult, type RunEnding } from './client/ending.ts';
export { askOpenWork, clock, describePending, type OpenWork } from './client/pending.ts';
export { assertNewRun, DuplicateRun, newRunId, startRun, type RunSpec, type StartedRun } from './client/start-run.ts';
export {
  findQueue,
  findUnopened,
  queryStatus,
  requestCancel,
  steer,
  type TalkOutcome,
  type UnopenedRun,
} from './client/talk.ts';

/** The only user of the Temporal client on this side: start, watch, stop and talk to runs. */
export { connect, isUnreachable, ServerUnreachable, type TemporalClient } from './client/connection.ts';
export { awaitResult, type RunEnding } from './client/ending.ts';
export { askOpenWork, clock, describePending, type OpenWork } from './client/pending.ts';
export { assertNewRun, newRunId, startRun, type RunSpec, type StartedRun } from './client/start-run.ts';
export { DuplicateRun, hasLeftNothing } from './client/start-refused.ts';
export { queryStatus, requestCancel, steer, type TalkOutcome } from './client/talk.ts';
export { findQueue, findUnopened, type UnopenedRun } from './client/unopened.ts';

import { isGrpcServiceError, NamespaceNotFoundError } from '@temporalio/client';

/** There is a run with this id already. */
export class DuplicateRun extends Error {
  override readonly name = 'DuplicateRun';
  /** It is another home's: nothing in this one can belong to it. */
  readonly isElsewhere: boolean;

  constructor(runId: string, isElsewhere = false) {
    const next = isElsewhere
      ? 'already on this Temporal server, started from another home; choose another --id.'
      : `already; choose another --id. errand show ${runId} shows it.`;
    super(`There is a run ${runId} ${next}`);
    this.isElsewhere = isElsewhere;
  }
}

// INVALID_ARGUMENT, PERMISSION_DENIED: like an unknown namespace, a no to the request itself, however often it was sent.
const REFUSALS: ReadonlySet<number> = new Set([3, 7]);

/** Whether the server has said no: after any other error the run may have been started all the same. */
export function isRefusal(error: unknown): boolean {
  for (let current = error; current instanceof Error; current = current.cause) {
    if (current instanceof NamespaceNotFoundError) return true;
    if (isGrpcServiceError(current)) return REFUSALS.has(current.code);
  }
  return false;
}

/** Whether a start that failed with this error has left no run in this home, neither its own nor one with the same id. */
export function hasLeftNothing(error: unknown): boolean {
  return error instanceof DuplicateRun ? error.isElsewhere : isRefusal(error);
}

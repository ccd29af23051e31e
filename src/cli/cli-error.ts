import type { AgentStatus } from '../protocol.ts';

/** What the exit codes mean; `docs` and scripts rely on them. */
export const EXIT = {
  completed: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  cancelled: 4,
  rejected: 5,
  unreachable: 6,
  detached: 130,
} as const;

const EXIT_OF_STATUS: Readonly<Record<AgentStatus, number>> = {
  completed: EXIT.completed,
  failed: EXIT.failed,
  lost: EXIT.failed,
  max_turns: EXIT.limit,
  budget: EXIT.limit,
  timeout: EXIT.limit,
  cancelled: EXIT.cancelled,
  refused: EXIT.rejected,
  rejected: EXIT.rejected,
};

/** Exit code of a run that ended with this status. */
export function exitCodeOf(status: AgentStatus): number {
  return EXIT_OF_STATUS[status];
}

/** Ends a command with words for the user instead of a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

import type { OtherServer } from './instance.ts';

/** What a supervisor is started with. Its environment is that of the first workers. */
export interface SupervisorOptions {
  readonly home: string;
  /** Run workers for this server instead of an embedded one. */
  readonly other?: OtherServer;
  /** Path of the Temporal CLI; needed for an embedded server. */
  readonly cli?: string;
  /** How long a worker may finish what it does when it is told to end. */
  readonly graceMs: number;
  readonly command: readonly string[];
  readonly buildId: string;
  readonly count: number;
}

/** A supervisor's exit code when another one looks after this instance already. */
export const EXIT_ALREADY_RUNNING = 3;

// One argument, as JSON: nothing in it is secret.
export function toArgument(options: SupervisorOptions): string {
  return JSON.stringify(options);
}

export function fromArgument(argument: string | undefined): SupervisorOptions {
  if (argument === undefined) throw new Error('The supervisor is started by errand itself: use "errand up".');
  return JSON.parse(argument) as SupervisorOptions;
}

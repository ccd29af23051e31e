/** What went wrong, by the column of the table that it counts in. */
export interface Violation {
  readonly kind: 'lost' | 'doubled' | 'orphan' | 'untrue';
  readonly text: string;
}

/** A kill that happened. */
export interface Done {
  readonly atMs: number;
  /** Until then what was running may still have been lost by it; see `Round`. */
  readonly untilMs: number;
  readonly what: string;
  /** Whether supervisors of shell commands were among the victims. */
  readonly hitsCommands: boolean;
}

export function lost(text: string): Violation {
  return { kind: 'lost', text };
}

export function doubled(text: string): Violation {
  return { kind: 'doubled', text };
}

export function orphan(text: string): Violation {
  return { kind: 'orphan', text };
}

export function untrue(text: string): Violation {
  return { kind: 'untrue', text };
}

/** A worker that its supervisor's successor did not end. */
export function stray(pid: number): Violation {
  return orphan(`worker ${pid} ran on without a supervisor`);
}

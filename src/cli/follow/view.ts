import type { FollowEvent } from './events.ts';

/** Shows a run while it is followed. */
export interface FollowView {
  show(event: FollowEvent): void;
  /** Called a few times a second, for what moves without an event. */
  tick(): void;
  /** Prints lines that stay, above what is redrawn. */
  print(line: string): void;
  /** No more redrawing: what follows is printed below. */
  close(): void;
}

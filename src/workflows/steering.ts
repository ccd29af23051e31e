import { MAX_PROMPT_BYTES } from '../protocol.ts';
import type { SteeringMessage } from '../protocol.ts';

/** Steering waits in workflow state and travels through history: what waits has to stay far below a payload's 2 MiB. */
const MAX_WAITING_BYTES = 256 * 1024;

const MAX_ID_BYTES = 200;

/** Ids remembered over continue-as-new: far more than one client has under way. */
const REMEMBERED_IDS = 100;

/** What the decision needs to know of a running agent. */
export interface Steerable {
  readonly isEnding: boolean;
  readonly steering: readonly SteeringMessage[];
}

/** Why a steering message cannot be taken; undefined when it can. It was sent from outside and may be anything. */
export function steeringProblem({ isEnding, steering }: Steerable, message: unknown): string | undefined {
  if (isEnding) return 'run is ending; use errand continue';
  const { id, text } = (message ?? {}) as { readonly id?: unknown; readonly text?: unknown };
  if (typeof id !== 'string' || id === '') return 'steer needs an "id": any unique text';
  if (bytesOf(id) > MAX_ID_BYTES) return `the "id" of steer may have ${MAX_ID_BYTES} bytes`;
  if (typeof text !== 'string' || text.trim() === '') return 'steer needs a "text" that is not empty';
  if (bytesOf(text) > MAX_PROMPT_BYTES)
    return `steer takes up to ${MAX_PROMPT_BYTES} bytes; put longer text in a file of the workspace and name it`;
  const waitingBytes = steering.reduce((sum, waiting) => sum + weightOf(waiting), 0);
  if (waitingBytes + weightOf({ id, text }) > MAX_WAITING_BYTES)
    return (
      `${steering.length} messages (${waitingBytes} bytes) wait for the next turn already, and up to ` +
      `${MAX_WAITING_BYTES} bytes can. This one was not taken: send it after that turn, or put it in a file of the ` +
      'workspace and name the file in a short message'
    );
  return undefined;
}

/** Braces, names and quotes of one in JSON: of very many short messages they are the most. */
const FRAME_BYTES = 20;

function weightOf({ id, text }: SteeringMessage): number {
  return bytesOf(id) + bytesOf(text) + FRAME_BYTES;
}

export function rememberId(ids: readonly string[], id: string): readonly string[] {
  return [...ids, id].slice(-REMEMBERED_IDS);
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

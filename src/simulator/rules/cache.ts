import { isObject } from '../json.ts';
import { blocksOf } from '../wire.ts';
import type { RequestBody } from '../wire.ts';

const MAX_MARKS = 4;

/** At most four cache marks, each well formed. */
export function cacheProblem(body: RequestBody): string | undefined {
  const marks = allMarks(body).filter((mark) => mark !== undefined && mark !== null);
  const bad = marks.find((mark) => !isObject(mark) || mark.type !== 'ephemeral' || !isLifetime(mark.ttl));
  if (bad !== undefined)
    return `cache_control: Input should be type 'ephemeral' with ttl '5m' or '1h', but it is ${JSON.stringify(bad)}`;
  if (marks.length <= MAX_MARKS) return undefined;
  return `A maximum of ${MAX_MARKS} blocks with cache_control may be provided. Found ${marks.length}.`;
}

function allMarks(body: RequestBody): unknown[] {
  const blocks = [...blocksOf(body.system), ...body.messages.flatMap((message) => blocksOf(message.content))];
  const parts = [...(body.tools ?? []), ...blocks];
  return [body.cache_control, ...parts.map((part) => part.cache_control)];
}

function isLifetime(ttl: unknown): boolean {
  return ttl === undefined || ttl === '5m' || ttl === '1h';
}

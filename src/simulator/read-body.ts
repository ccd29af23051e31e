import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from './validate.ts';

export interface RawBody {
  readonly bytes: number;
  /** Undefined when too large or not valid UTF-8 JSON. */
  readonly json: unknown;
  readonly problem?: string;
}

/** Reads a whole body; one that is too large is counted to its end but not kept. */
export async function readBody(request: IncomingMessage): Promise<RawBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? { bytes, json: undefined } : { bytes, ...parse(Buffer.concat(chunks)) };
}

function parse(body: Buffer): { json: unknown; problem?: string } {
  try {
    return { json: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown };
  } catch (error) {
    return { json: undefined, problem: `The request body is not valid JSON: ${String(error)}` };
  }
}

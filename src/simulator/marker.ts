/** `[[scenario:NAME key=value key="two words"]]`: which scenario an agent plays, written into its prompt. */
export interface Marker {
  readonly name: string;
  readonly args: Readonly<Record<string, string>>;
  /** The marker as it was written. */
  readonly source: string;
}

/** Arguments that are undefined are left out. */
export type MarkerArgs = Readonly<Record<string, string | number | undefined>>;

const MARKER = /\[\[scenario:([A-Za-z0-9_-]+)((?:\s+[A-Za-z0-9_-]+=(?:"[^"]*"|[^\s\]"]*))*)\s*\]\]/;
const ARG = /([A-Za-z0-9_-]+)=(?:"([^"]*)"|([^\s\]"]*))/g;
const TURN_MARKER = /\[\[turn:(\d+)\]\]/g;

export function readMarker(text: string): Marker | undefined {
  const found = MARKER.exec(text);
  if (!found) return undefined;
  const [source, name = '', args = ''] = found;
  return { name, source, args: readArgs(args) };
}

/** The marker to put into a prompt. Values must not contain double quotes or `]]`; encode such text first. */
export function toMarker(name: string, args: MarkerArgs = {}): string {
  const given = Object.entries(args).filter(([, value]) => value !== undefined);
  const fields = given.map(([key, value]) => ` ${key}=${quoteIfNeeded(String(value))}`);
  const marker = `[[scenario:${name}${fields.join('')}]]`;
  if (readMarker(marker)?.source !== marker) {
    throw new Error(`The marker ${marker} would not be read back whole; base64-encode the argument with toBase64().`);
  }
  return marker;
}

/** Text without its markers, for replies that quote a prompt. */
export function withoutMarkers(text: string): string {
  return text.replace(new RegExp(MARKER, 'g'), '').trim();
}

/** A summary carries this, so that turns go on counting after older messages were dropped. */
export function toTurnMarker(turnsDone: number): string {
  return `[[turn:${turnsDone}]]`;
}

export function readTurnMarker(text: string): number | undefined {
  const last = [...text.matchAll(TURN_MARKER)].at(-1)?.[1];
  return last === undefined ? undefined : Number(last);
}

export function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8');
}

function readArgs(text: string): Record<string, string> {
  const args: Record<string, string> = {};
  for (const [, key = '', quoted, plain] of text.matchAll(ARG)) args[key] = quoted ?? plain ?? '';
  return args;
}

function quoteIfNeeded(value: string): string {
  return /[\s\]]/.test(value) ? `"${value}"` : value;
}

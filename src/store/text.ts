/** Text cut to sizes in UTF-8 bytes, and text that any reader can take. */

const ANY_SURROGATE = /[\ud800-\udfff]/;
const LONE_SURROGATES = /\p{Surrogate}/gu;
const NULS = /\0/g;

export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** The first bytes of a text, cut between code points. */
export function headOf(text: string, maxBytes: number): string {
  if (fits(text, maxBytes)) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(0, maxBytes);
  while (end > 0 && isContinuation(bytes[end])) end--;
  return bytes.toString('utf8', 0, end);
}

/** The last bytes of a text, cut between code points. */
export function tailOf(text: string, maxBytes: number): string {
  if (fits(text, maxBytes)) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let start = bytes.length - Math.max(0, maxBytes);
  while (start < bytes.length && isContinuation(bytes[start])) start++;
  return bytes.toString('utf8', start);
}

/** Lone surrogates become U+FFFD; JSON with one in it is refused by the API and by other readers. */
export function toWellFormed(text: string): string {
  // Most texts have none at all, and every turn looks through the whole conversation: the quick look is ten times cheaper.
  return ANY_SURROGATE.test(text) ? text.replace(LONE_SURROGATES, '\uFFFD') : text;
}

/** Well-formed and without NUL, which becomes the picture of a NUL (U+2400). */
export function toSafeText(text: string): string {
  const wellFormed = toWellFormed(text);
  return wellFormed.includes('\0') ? wellFormed.replace(NULS, '\u2400') : wellFormed;
}

/** The same change for every string of a JSON value, keys included; what is fine already keeps its identity. */
export function mapStrings<Value>(value: Value, change: (text: string) => string): Value {
  return changed(value, change) as Value;
}

function changed(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => changed(item, change));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  return typeof value === 'object' && value !== null ? changedObject(value, change) : value;
}

function changedObject(value: object, change: (text: string) => string): object {
  const before = Object.entries(value);
  const after = before.map(([key, item]): [string, unknown] => [change(key), changed(item, change)]);
  const isSame = after.every(([key, item], index) => key === before[index]?.[0] && item === before[index]?.[1]);
  return isSame ? value : Object.fromEntries(after);
}

/** Quick answer for most texts: no UTF-16 unit takes more than three bytes. */
function fits(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

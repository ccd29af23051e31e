import { isUtf8 } from 'node:buffer';
import type { OpenedFile } from './paths.ts';
import { ToolError } from './tool.ts';

/** Largest file that is held in memory, hashed for the read set, and edited. */
export const MAX_WHOLE_BYTES = 16 * 1024 * 1024;

/** Enough to recognise every kind of content below. */
export const SNIFF_BYTES = 8192;

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/** Content decides, never the name. */
const KINDS: readonly { readonly kind: string; readonly isIt: (head: Buffer) => boolean }[] = [
  { kind: 'a PNG image', isIt: startsWith('89504e470d0a1a0a') },
  { kind: 'a JPEG image', isIt: startsWith('ffd8ff') },
  { kind: 'a GIF image', isIt: startsWith('47494638') },
  { kind: 'a WebP image', isIt: (head) => startsWith('52494646')(head) && head.toString('latin1', 8, 12) === 'WEBP' },
  { kind: 'a PDF document', isIt: startsWith('255044462d') },
  { kind: 'UTF-32 text', isIt: (head) => startsWith('fffe0000')(head) || startsWith('0000feff')(head) },
  { kind: 'UTF-16 text (little-endian)', isIt: startsWith('fffe') },
  { kind: 'UTF-16 text (big-endian)', isIt: startsWith('feff') },
];

/** Throws ToolError when the bytes are not text that can be shown and edited without harm. */
export function requireText(path: string, content: Buffer, sizeBytes: number): void {
  const kind = KINDS.find(({ isIt }) => isIt(content))?.kind;
  const size = shownSize(sizeBytes);
  if (kind?.startsWith('UTF-')) {
    throw new ToolError(`'${path}' is ${kind}, ${size}; only UTF-8 can be shown. Convert it with iconv first.`);
  }
  if (kind !== undefined) throw new ToolError(`'${path}' is ${kind}, ${size}; only text can be shown for now.`);
  if (content.includes(0)) throw binaryProblem(path, sizeBytes);
}

export function binaryProblem(path: string, sizeBytes: number): ToolError {
  return new ToolError(`'${path}' is a binary file, ${shownSize(sizeBytes)}; only text can be shown and edited.`);
}

/** Up to `maxBytes` of a file from its start; `complete` is false when there is more. The size on record may lie. */
export async function readUpTo(
  file: OpenedFile,
  maxBytes: number,
): Promise<{ readonly content: Buffer; readonly complete: boolean }> {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of readChunks(file)) {
    chunks.push(chunk);
    total += chunk.length;
    if (total > maxBytes) return { content: Buffer.concat(chunks), complete: false };
  }
  return { content: Buffer.concat(chunks), complete: true };
}

/** The file's bytes from its start, a piece at a time; the caller closes the file. */
export async function* readChunks(file: OpenedFile, signal?: AbortSignal): AsyncGenerator<Buffer> {
  const chunkBytes = file.stat.size > MAX_WHOLE_BYTES ? 1024 * 1024 : 64 * 1024;
  for (let position = 0; ;) {
    signal?.throwIfAborted();
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await file.handle.read(chunk, 0, chunkBytes, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

/** Text of a file and how to turn it back into the very same bytes. */
export interface FileText {
  /** Without byte order mark. */
  readonly text: string;
  /** `latin1`: not UTF-8; every character stands for one byte, whatever it means. */
  readonly encoding: 'utf8' | 'latin1';
  readonly hasBom: boolean;
}

export function toFileText(content: Buffer): FileText {
  if (!isUtf8(content)) return { text: content.toString('latin1'), encoding: 'latin1', hasBom: false };
  const hasBom = content.subarray(0, BOM.length).equals(BOM);
  return { text: content.toString('utf8', hasBom ? BOM.length : 0), encoding: 'utf8', hasBom };
}

export function fromFileText(file: FileText): Buffer {
  const body = Buffer.from(file.text, file.encoding);
  return file.hasBom ? Buffer.concat([BOM, body]) : body;
}

/** Bytes of a line that are not UTF-8 are shown as `\xNN`, so that nobody takes a guess for the content. */
export function decodeLine(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  return bytes.toString('latin1').replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}

export function withoutBom(content: Buffer): Buffer {
  return content.subarray(0, BOM.length).equals(BOM) ? content.subarray(BOM.length) : content;
}

export function shownSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1] ?? ''}`;
}

function startsWith(hex: string): (head: Buffer) => boolean {
  const wanted = Buffer.from(hex, 'hex');
  return (head) => head.subarray(0, wanted.length).equals(wanted);
}

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/**
 * Where each commit of a SQLite write-ahead log ends, in bytes. A frame that completes a transaction names the size of the
 * database after it; frames of an earlier use of the file have other salts.
 */
export function commitEnds(wal: Buffer): number[] {
  if (wal.length < WAL_HEADER_BYTES) return [];
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8);
  const salt = wal.subarray(16, 24);
  const ends: number[] = [];
  for (let at = WAL_HEADER_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    if (!wal.subarray(at + 8, at + 16).equals(salt)) break;
    if (wal.readUInt32BE(at + 4) !== 0) ends.push(at + frameBytes);
  }
  return ends;
}

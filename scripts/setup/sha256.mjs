import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';

const PIECE_BYTES = 1 << 20;

/** Hash of a file of any size, in hexadecimal. */
export function sha256(file) {
  const hash = createHash('sha256');
  const fd = openSync(file, 'r');
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let length = readSync(fd, piece); length > 0; length = readSync(fd, piece))
      hash.update(piece.subarray(0, length));
    return hash.digest('hex');
  } finally {
    closeSync(fd);
  }
}

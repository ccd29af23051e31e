import { statfs } from 'node:fs/promises';

/** Much more than a turn writes: the question, the largest reply and its objects. */
const ROOM_BYTES = 2 * 1024 * 1024;

/**
 * Throws ENOSPC where a reply could not be stored. Asked before a request is sent: on a nearly full disk the small record
 * of the attempt would still fit and the reply would not, and every retry would be paid anew.
 */
export async function assertRoom(folder: string): Promise<void> {
  const { bavail, bsize, blocks } = await statfs(folder);
  // Some file systems do not know their size.
  if (blocks === 0 || bavail * bsize >= ROOM_BYTES) return;
  const message = `${bavail * bsize} bytes are left on the file system of ${folder}, ${ROOM_BYTES} are needed`;
  throw Object.assign(new Error(message), { code: 'ENOSPC', path: folder });
}

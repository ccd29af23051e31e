/** A failure that a person can do something about: its message says what failed and what to try next. */
export class SetupFailure extends Error {}

/** Prints an expected failure as one message and ends with code 2; anything else is a bug and is thrown on. */
export function reportFailure(error) {
  const known = error instanceof SetupFailure ? error : fromFileSystem(error);
  if (known === undefined) throw error;
  console.error(`errand: ${known.message}`);
  process.exit(2);
}

/** What a full disk should say wherever it is noticed. */
export function noSpace(where) {
  return new SetupFailure(
    `there is no space left on the disk (${where}). Free about 1 GB there and run the same command again; what was begun is taken up again.`,
  );
}

/** Whether a program's own words say that the disk is full. */
export function saysNoSpace(text) {
  return /ENOSPC|No space left on device|Errno 28\b|EDQUOT|Disk quota exceeded/i.test(text);
}

function fromFileSystem({ code, path }) {
  if (code === 'ENOSPC' || code === 'EDQUOT') return noSpace(path ?? 'the project folder');
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return undefined;
  return new SetupFailure(
    `${path ?? 'a file of the project'} cannot be written (${code}). The project folder must belong to you: check its owner, or clone it anew.`,
  );
}

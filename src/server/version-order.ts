const VERSION = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+\S*)?$/;

/** Below zero when `one` is older than `other`, above when it is newer, 0 when they are equal; undefined: no versions. */
export function compareVersions(one: string, other: string): number | undefined {
  const [left, right] = [VERSION.exec(one), VERSION.exec(other)];
  if (left === null || right === null) return undefined;
  const numbers = compareEach(left.slice(1, 4), right.slice(1, 4));
  return numbers === 0 ? comparePreReleases(left[4], right[4]) : numbers;
}

/** Whether this is a version that can be compared with others. */
export function isVersion(text: string): boolean {
  return VERSION.test(text);
}

// A pre-release is older than what it leads to.
function comparePreReleases(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return compareEach(one.split('.'), other.split('.'));
}

// By number where both are numbers; a number is older than a word, and less of the same is older than more.
function compareEach(one: readonly string[], other: readonly string[]): number {
  const length = Math.max(one.length, other.length);
  const orders = Array.from({ length }, (_, index) => comparePart(one[index], other[index]));
  return orders.find((order) => order !== 0) ?? 0;
}

function comparePart(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined);
  const [left, right] = [one, other].map((part) => (/^\d+$/.test(part) ? BigInt(part) : undefined));
  if (left !== undefined && right !== undefined) return left === right ? 0 : left < right ? -1 : 1;
  if (left !== undefined || right !== undefined) return left === undefined ? 1 : -1;
  return one === other ? 0 : one < other ? -1 : 1;
}

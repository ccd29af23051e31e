import { describe, expect, it } from 'vitest';
import { compareVersions, isVersion } from '../../src/server/version-order.ts';

describe('compareVersions', () => {
  it.each([
    ['1.9.1', '1.10.0'],
    ['1.9.9', '2.0.0'],
    ['1.9.1', '1.9.10'],
    ['1.10.0-rc.1', '1.10.0'],
    ['1.9.1', '1.10.0-rc.1'],
    ['1.10.0-rc.2', '1.10.0-rc.10'],
    ['1.10.0-alpha', '1.10.0-alpha.1'],
    ['1.10.0-1', '1.10.0-alpha'],
    ['0.0.0-DEV', '1.9.1'],
  ])('%s is older than %s', (older, newer) => {
    expect(compareVersions(older, newer)).toBeLessThan(0);
    expect(compareVersions(newer, older)).toBeGreaterThan(0);
  });

  it('takes what only the build tells apart for equal', () => {
    expect(compareVersions('1.9.1+build.5', 'v1.9.1')).toBe(0);
    expect(compareVersions('1.9.1-rc.1', '1.9.1-rc.1')).toBe(0);
  });

  it.each(['', '1.9', 'latest', '1.9.1 or so', '1.9.1.2'])('knows nothing of %j', (text) => {
    expect(isVersion(text)).toBe(false);
    expect(compareVersions(text, '1.9.1')).toBeUndefined();
    expect(compareVersions('1.9.1', text)).toBeUndefined();
  });
});

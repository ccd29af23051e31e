import { describe, expect, it } from 'vitest';
import { environmentDigest, workerEnvironment } from '../../src/server/worker-environment.ts';

describe("a worker's environment", () => {
  it.each([
    ['ANTHROPIC_API_KEY', true],
    ['ANTHROPIC_BASE_URL', true],
    ['ERRAND_MODEL', true],
    ['HTTPS_PROXY', true],
    ['https_proxy', true],
    ['TEMPORAL_API_KEY', true],
    ['ERRAND_HOME', false],
    ['ERRAND_TEMPORAL_CLI', false],
    ['PWD', false],
    ['EDITOR', false],
  ])('%s calls for a restart: %s', (name, isRelevant) => {
    const changed = environmentDigest({ A: '1', [name]: 'new' }) !== environmentDigest({ A: '1', [name]: 'old' });
    expect(changed).toBe(isRelevant);
  });

  it('is the same in any order, and an empty variable is one that is not set', () => {
    const one = environmentDigest({ ERRAND_A: '1', ERRAND_B: '2', ERRAND_C: '' });
    expect(environmentDigest({ ERRAND_B: '2', ERRAND_A: '1' })).toBe(one);
  });

  it('takes no address of an embedded server from its caller', () => {
    const caller = { ERRAND_TEMPORAL_ADDRESS: 'stale', PATH: '/bin' };
    const environment = workerEnvironment(caller, { home: '/h', name: 'w1', identity: 'id' });
    expect(environment).toMatchObject({
      PATH: '/bin',
      ERRAND_HOME: '/h',
      ERRAND_WORKER_NAME: 'w1',
      ERRAND_WORKER_IDENTITY: 'id',
    });
    expect(environment['ERRAND_TEMPORAL_ADDRESS']).toBeUndefined();
  });
});

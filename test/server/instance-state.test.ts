import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ownIdentity } from '../../src/process-identity.ts';
import type { Instance } from '../../src/server/instance.ts';
import { readLiveState } from '../../src/server/instance-state.ts';
import { freshFolder } from '../jobs/supervisor-program.ts';

it('a state file and a lock that an earlier errand wrote still name its supervisor and its processes', () => {
  const folder = freshFolder('errand-state-');
  const { startTime, ...rest } = ownIdentity();
  const earlier = { ...rest, startedAt: startTime };
  const instance = { state: join(folder, 'state.json'), lock: join(folder, 'lock') } as Instance;
  const worker = { name: 'w1', identity: 'x', buildId: 'b', process: earlier, phase: 'ready', restarts: 0 };
  writeFileSync(instance.lock, JSON.stringify(earlier));
  writeFileSync(instance.state, JSON.stringify({ supervisor: earlier, temporal: worker, workers: [worker] }));
  const state = readLiveState(instance);
  const found = [state?.supervisor, state?.temporal?.process, state?.workers[0]?.process];
  expect(found).toEqual(Array(3).fill(ownIdentity()));
});

import { expect, it } from 'vitest';
import { unsaidSteering } from '../../src/activities/unsaid-steering.ts';
import type { AgentFiles } from '../../src/activities/agent-files.ts';
import { session, toRecords, user } from '../store/fixtures.ts';

const [a, b] = [
  { id: 'a', text: 'go left' },
  { id: 'b', text: 'go right' },
];

it('steering that an earlier attempt has sealed is not said again', () => {
  const records = toRecords([session(), { ...user({}), steering: ['a'] } as ReturnType<typeof user>]);
  const files = { transcript: { records } } as unknown as AgentFiles;
  expect(unsaidSteering(files, [a, b])).toEqual([b]);
  expect(unsaidSteering(files)).toEqual([]);
});

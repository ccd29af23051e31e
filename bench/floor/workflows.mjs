import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';

const { ask, noop } = proxyActivities({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '10 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/** The least a durable agent can do: two activities a turn and nothing else. */
export async function floor({ turns, prompt }) {
  for (let turn = 1; turn <= turns; turn++) {
    await ask({ turn, prompt });
    await noop();
  }
  await ask({ turn: turns + 1, prompt });
}

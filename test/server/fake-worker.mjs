// Stands in for the real worker: says it is ready, keeps what it was given, and ends when told to.
import { appendFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

const { ERRAND_HOME, ERRAND_WORKER_NAME, ERRAND_WORKER_IDENTITY, ERRAND_TEMPORAL_ADDRESS, FAKE_WORKER } = process.env;

function note(event, more = {}) {
  const line = { event, name: ERRAND_WORKER_NAME, identity: ERRAND_WORKER_IDENTITY, pid: process.pid, ...more };
  appendFileSync(join(ERRAND_HOME, 'worker-events.jsonl'), `${JSON.stringify(line)}\n`);
}

if (FAKE_WORKER === 'broken') {
  console.error('the key is not set');
  process.exit(1);
}

process.on('SIGTERM', () => {
  if (FAKE_WORKER === 'deaf') return note('deaf');
  if (!ERRAND_TEMPORAL_ADDRESS) process.exit(0);
  const [host, port] = ERRAND_TEMPORAL_ADDRESS.split(':');
  const probe = connect({ host, port: Number(port) });
  const end = (isServerUp) => {
    note('ended', { isServerUp });
    process.exit(0);
  };
  probe.on('connect', () => end(true));
  probe.on('error', () => end(false));
});
setInterval(() => {}, 1000);
// Says so while it lives; SIGSTOP silences it.
const speak = () => process.send({ type: 'alive', everyMs: 40 });
if (FAKE_WORKER === 'speaking') {
  speak();
  setInterval(speak, 40);
}
note('started', {
  address: ERRAND_TEMPORAL_ADDRESS,
  model: process.env.ERRAND_MODEL,
  secret: process.env.ANTHROPIC_API_KEY,
});
process.send({ type: 'ready' });

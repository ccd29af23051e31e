import { rmSync } from 'node:fs';
import { isSameFolder, placeOf } from '../home.ts';
import { createInstanceFolders, instanceOf } from './instance.ts';
import { readState } from './instance-state.ts';
import { releaseLock, takeLock } from './life-lock.ts';
import { Supervision } from './supervision.ts';
import { EXIT_ALREADY_RUNNING, fromArgument } from './supervisor-options.ts';

// The detached process behind `errand up`: it takes the instance's lock for its whole life, takes over from a killed
// predecessor, and then keeps server and workers alive until it gets SIGTERM.
const options = fromArgument(process.argv[2]);
const instance = instanceOf(options.home, options.other);
process.on('SIGHUP', () => log('the terminal closed; going on'));

createInstanceFolders(instance);
const home = placeOf(instance.home);
if (!takeLock(instance.lock, home)) process.exit(EXIT_ALREADY_RUNNING);

// Until this one has written its own, the state file of the predecessor is the only record of what it left.
let isCleared = false;
let isEnding = false;
const onHomeGone = () => void end(`${instance.folder} was deleted or moved`);
const supervision = new Supervision({ options, instance, log, onHomeGone });
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));

const leftBehind = readState(instance);
await supervision.takeOver(leftBehind);
isCleared = true;
await supervision.begin();

async function end(reason: string): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  log(`${reason}: stopping`);
  await supervision.stop();
  // At a path that this home left, the files are those of another one.
  if (isCleared && isSameFolder(placeOf(instance.home), home))
    for (const file of [instance.control, instance.state]) rmSync(file, { force: true });
  releaseLock(instance.lock);
  log('stopped');
  process.exit(0);
}

// Standard error is the supervisor's log. On a full disk there is nowhere to say that it is full, and the server must go on.
function log(line: string): void {
  try {
    process.stderr.write(`${new Date().toISOString()} ${line}\n`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

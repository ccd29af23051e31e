// Loaded into a worker before its own program (`NODE_OPTIONS=--import`), in each of its threads: the product stays as it is.
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, threadId } from 'node:worker_threads';

const WRITE_EVERY_MS = 200;
const { BENCH_HEAP_FOLDER: folder, BENCH_CHILD_TURNS: childTurns } = process.env;

// Stands in for an agent type of a user's own with `maxTurns`, which can be more than the 30 of the built-in ones; the
// parent's limit and everything else that narrows a child apply as always.
if (isMainThread && childTurns !== undefined) {
  const { generalPurposeType } = await import('../dist/agents/built-in.js');
  generalPurposeType.maxTurns = Number(childTurns);
}

// A file a thread: only the thread itself can tell its heap. Renamed, so that nobody reads half of it.
if (folder !== undefined) {
  const file = join(folder, String(threadId));
  setInterval(() => {
    writeFileSync(`${file}.draft`, String(process.memoryUsage().heapUsed));
    renameSync(`${file}.draft`, file);
  }, WRITE_EVERY_MS).unref();
}

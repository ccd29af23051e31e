// Preloaded into a worker (NODE_OPTIONS=--import): the process stops itself (SIGSTOP) the first time a function of
// node:fs/promises is called with a path that matches. STOP_AT is `<function> <regular expression>`, STOP_MARK the file
// that tells that it has stopped. ESM imports of a built-in follow its default export once they are synchronised.
import { writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const [name, pattern] = (process.env.STOP_AT ?? '').split(' ');
const original = fs[name];
let isDone = false;

if (original) {
  fs[name] = async (...given) => {
    if (!isDone && given.some((value) => typeof value === 'string' && new RegExp(pattern).test(value))) {
      isDone = true;
      writeFileSync(process.env.STOP_MARK, String(process.pid));
      process.kill(process.pid, 'SIGSTOP');
    }
    return original(...given);
  };
  syncBuiltinESMExports();
}

import { spawn } from 'node:child_process';

/**
 * Runs a program to its end. `output` is all it said; `isMissing` that there is no such program. With `inherit` it
 * speaks to the terminal itself.
 */
export function run(program, args, { cwd, env = process.env, inherit = false, timeoutMs } = {}) {
  return new Promise((resolve, reject) => {
    const stdio = inherit ? 'inherit' : ['ignore', 'pipe', 'pipe'];
    const child = spawn(program, args, { cwd, env, stdio, timeout: timeoutMs });
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    const finish = (result) => resolve({ ...result, output: Buffer.concat(chunks).toString('utf8') });
    child.on('error', (error) => {
      if (['ENOENT', 'EACCES', 'ENOEXEC'].includes(error.code)) finish({ code: undefined, isMissing: true });
      else reject(error);
    });
    child.on('close', (code, signal) => finish({ code, signal, isMissing: false }));
  });
}

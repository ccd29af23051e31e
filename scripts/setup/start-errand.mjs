import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { project } from './project.mjs';
import { needsTemporal, setUp } from './set-up.mjs';

const DEMO_OPTIONS = ['--slow'];

/** Sets up, then runs errand where npm was called from, and ends as it ends. */
export async function main(args) {
  await setUp({ needsTemporal: needsTemporal() });
  const isDemo = args.every((arg) => DEMO_OPTIONS.includes(arg));
  process.exitCode = await runErrand(isDemo ? ['demo', ...args] : ['run', '--diff', ...args]);
}

function runErrand(args) {
  return new Promise((resolve, reject) => {
    const cwd = process.env.INIT_CWD ?? process.cwd();
    const child = spawn(process.execPath, [project.cli, ...args], { cwd, stdio: 'inherit' });
    // A terminal sends Ctrl-C to both of us: passed on once more it would be the second one, which means "detach now".
    process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
    for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.on('error', reject);
    child.on('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

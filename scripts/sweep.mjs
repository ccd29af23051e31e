// The kill sweep: `npm run sweep -- --kills N --seed S`. What it needs is set up first, as for the tests.
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { project } from './setup/project.mjs';
import { setUp } from './setup/set-up.mjs';

await setUp();
const viteNode = join(project.modules, 'vite-node', 'vite-node.mjs');
const program = join(project.root, 'test', 'sweep', 'main.ts');
const { status } = spawnSync(process.execPath, [viteNode, program, '--', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

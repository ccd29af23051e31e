import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll } from 'vitest';

/** Bundles programs of the sources for Node, which runs no TypeScript; removed when the test file is done. */
export async function buildPrograms<Name extends string>(sources: Record<Name, string>): Promise<Record<Name, string>> {
  const folder = freshFolder('errand-programs-');
  await build({
    entryPoints: sources,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });
  const names = Object.keys(sources) as Name[];
  return Object.fromEntries(names.map((name) => [name, join(folder, `${name}.mjs`)])) as Record<Name, string>;
}

export const SUPERVISOR_SOURCE = fileURLToPath(new URL('../../src/jobs/supervisor.ts', import.meta.url));

/** A new temporary folder; removed when the test file is done. */
export function freshFolder(prefix: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];
// Registered when the test file imports this: inside a test or a suite it would be too late.
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

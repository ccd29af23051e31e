import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MiniProject } from './mini-project.ts';

describe('the build', () => {
  it('is made once: with nothing changed it says nothing, starts nothing and touches nothing', async () => {
    const project = new MiniProject();
    const first = await project.run('scripts/build.mjs');
    expect(first).toMatchObject({ code: 0, lines: ['errand: building ...'] });
    expect(project.read('dist/workflow-bundle.js')).toBe('bundle');
    expect(project.read('dist/build-id')).toMatch(/^[0-9a-f]{12}\n$/);
    const before = statSync(join(project.root, 'dist')).ctimeMs;
    expect(await project.run('scripts/build.mjs')).toMatchObject({ code: 0, output: '' });
    expect(statSync(join(project.root, 'dist')).ctimeMs).toBe(before);
  });

  it('is made anew when a source changes, has another id then, and keeps nothing of a deleted one', async () => {
    const project = new MiniProject();
    project.write('src/old.ts', 'export const old = 1;\n');
    await project.run('scripts/build.mjs');
    const id = project.read('dist/build-id');
    expect(existsSync(join(project.root, 'dist/old.js'))).toBe(true);
    project.write('src/cli/main.ts', "console.log('other');\n");
    rmSync(join(project.root, 'src/old.ts'));
    expect((await project.run('scripts/build.mjs')).code).toBe(0);
    expect(project.read('dist/build-id')).not.toBe(id);
    expect(existsSync(join(project.root, 'dist/old.js'))).toBe(false);
  });

  it('has the same id when a source goes back to what it was', async () => {
    const project = new MiniProject();
    await project.run('scripts/build.mjs');
    const [id, source] = [project.read('dist/build-id'), project.read('src/cli/main.ts')];
    project.write('src/cli/main.ts', 'console.log(1);\n');
    await project.run('scripts/build.mjs');
    project.write('src/cli/main.ts', source);
    await project.run('scripts/build.mjs');
    expect(project.read('dist/build-id')).toBe(id);
  });

  it('leaves the old one in place when the new one does not compile, and names the first error', async () => {
    const project = new MiniProject();
    await project.run('scripts/build.mjs');
    const id = project.read('dist/build-id');
    project.write('src/cli/main.ts', 'const n: number = "text";\n');
    const { code, lines, output } = await project.run('scripts/build.mjs');
    expect(code).toBe(2);
    expect(lines.at(-1)).toMatch(
      /the sources do not compile, 1 errors. The first: src\/cli\/main.ts\(1,7\): error TS2322/,
    );
    expect(output).not.toMatch(/\n {4}at /);
    expect(project.read('dist/build-id')).toBe(id);
  });

  it('says what the bundler said when the workflows cannot be bundled', async () => {
    const project = new MiniProject();
    project.write('src/bundle.ts', "console.error('node:fs is not allowed');\nprocess.exit(1);\nexport {};\n");
    const { code, output } = await project.run('scripts/build.mjs');
    expect(code).toBe(2);
    expect(output).toContain('the workflows could not be bundled:\nnode:fs is not allowed');
  });
});

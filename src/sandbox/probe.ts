import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isolation } from './isolation.ts';

/** Whether bubblewrap really holds a command here; if not, what is wrong and how to put it right. */
export interface SandboxProbe {
  readonly contains: boolean;
  readonly problem?: string;
  readonly fix?: string;
}

/** Tries to break out in every way bash is meant to be kept from. Asked once per program and process. */
export function probeSandbox(bwrapPath: string | null): Promise<SandboxProbe> {
  const key = bwrapPath ?? '';
  const known = probes.get(key) ?? attemptEscape(bwrapPath);
  probes.set(key, known);
  return known;
}

/** Why bubblewrap could not start, from its own words and the kernel's settings. */
export function startFix(message: string, kernel: (name: string) => string | undefined = kernelSetting): string {
  if (kernel('kernel/apparmor_restrict_unprivileged_userns') === '1') {
    return 'AppArmor keeps users from making namespaces: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0';
  }
  if (kernel('kernel/unprivileged_userns_clone') === '0') {
    return 'The kernel keeps users from making namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1';
  }
  if (kernel('user/max_user_namespaces') === '0') {
    return 'The kernel allows no user namespaces: sudo sysctl -w user.max_user_namespaces=15000';
  }
  if (/ENOENT|not found/.test(message)) return INSTALL;
  return (
    'In a container, start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined ' +
    '--security-opt systempaths=unconfined; elsewhere, try the program by hand: bwrap --ro-bind / / true'
  );
}

const INSTALL =
  'Install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap; ' +
  'Arch: sudo pacman -S bubblewrap), or set ERRAND_BWRAP to the program.';

const probes = new Map<string, Promise<SandboxProbe>>();

async function attemptEscape(bwrapPath: string | null): Promise<SandboxProbe> {
  if (bwrapPath === null) return { contains: false, problem: 'bubblewrap (bwrap) was not found', fix: INSTALL };
  const folder = await mkdtemp(join(tmpdir(), 'errand-probe-'));
  const server = await listen();
  try {
    return await judge(bwrapPath, folder, server);
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function judge(bwrapPath: string, folder: string, server: Server): Promise<SandboxProbe> {
  const workspace = join(folder, 'workspace');
  const secret = join(workspace, 'secret');
  await mkdir(secret, { recursive: true, mode: 0o700 });
  await writeFile(join(secret, 'key'), 'probe');
  const name = `.errand-probe-${randomUUID()}`;
  const targets = [...new Set([homedir(), '/', '/etc', '/usr'])].map((place) => join(place, name));
  const { stdout, problem } = await runProbe(bwrapPath, { workspace, secret, targets, port: portOf(server) });
  const escaped = targets.filter((target) => existsSync(target));
  for (const target of escaped) rmSync(target, { force: true });
  if (!stdout.includes('done\n'))
    return { contains: false, problem: `bwrap cannot run: ${problem}`, fix: startFix(problem) };
  const broken = stdout.split('\n').filter((line) => line.startsWith('broken: '));
  const findings = [...broken.map((line) => line.slice(8)), ...escaped.map((path) => `wrote ${path} on the host`)];
  if (findings.length === 0) return { contains: true };
  return { contains: false, problem: `bwrap does not contain: ${findings.join(', ')}`, fix: UPDATE };
}

const UPDATE = 'Install a current bubblewrap (0.6 or later) that is not set-uid, and run errand as a plain user.';

interface Attempt {
  readonly workspace: string;
  readonly secret: string;
  readonly targets: readonly string[];
  readonly port: number;
}

// Every line that tries something says so only when it worked; `done` tells that the script came to its end.
const SCRIPT = `
broken() { echo "broken: $1"; }
port=$1; secret=$2; host=$3; shift 3
echo x > inside || broken 'the workspace cannot be written'
for target; do ( : > "$target" ) 2>/dev/null && broken "wrote $target"; done
mount -o remount,rw,bind / 2>/dev/null && broken 'remounted / writable'
unshare -Urm mount -o remount,rw,bind / 2>/dev/null && broken 'remounted / in a namespace of its own'
for target; do ( : > "$target" ) 2>/dev/null && broken "wrote $target after a remount"; done
[ -e "$secret/key" ] && broken 'a masked file can be read'
( : < "/dev/tcp/127.0.0.1/$port" ) 2>/dev/null && broken 'the network of the host can be reached'
[ -e "/proc/$host/environ" ] && [ "$(cat "/proc/$host/comm" 2>/dev/null)" = node ] && broken 'processes of the host can be seen'
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || broken 'capabilities are left'
echo done
`;

function runProbe(bwrapPath: string, attempt: Attempt): Promise<{ stdout: string; problem: string }> {
  const { workspace, secret, targets, port } = attempt;
  const args = [
    ...isolation(false),
    ...['--bind', workspace, workspace, '--tmpfs', secret, '--chdir', workspace],
    ...['--clearenv', '--setenv', 'PATH', '/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin'],
    ...['--', 'bash', '-c', SCRIPT, 'probe', String(port), secret, String(process.pid), ...targets],
  ];
  return new Promise((resolve) => {
    execFile(bwrapPath, args, { timeout: 20_000, env: {} }, (error, stdout, stderr) => {
      resolve({ stdout, problem: stderr.trim() || error?.message || 'no answer' });
    });
  });
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy()).unref();
    server.once('error', reject).listen(0, '127.0.0.1', () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The probe is not listening on a port.');
  return address.port;
}

function kernelSetting(name: string): string | undefined {
  const path = `/proc/sys/${name}`;
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

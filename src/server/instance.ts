import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { homePaths } from '../home.ts';

/**
 * One supervisor and what it looks after. A home has one instance for its embedded server and one for each other
 * server it has workers for; they know nothing of each other.
 */
export interface Instance {
  readonly home: string;
  readonly folder: string;
  readonly lock: string;
  readonly state: string;
  readonly control: string;
  readonly logs: string;
  readonly ports: string;
  readonly database: string;
}

/** A server that errand did not start: only workers are run for it. */
export interface OtherServer {
  readonly address: string;
  readonly namespace: string;
}

/** Names the files of an instance: the embedded server's, or that of another server. Creates nothing. */
export function instanceOf(home: string, other?: OtherServer): Instance {
  const { server } = homePaths(home);
  return instanceIn(
    home,
    other ? join(server, `${OTHER_PREFIX}${digest(`${other.address}/${other.namespace}`)}`) : server,
  );
}

/** Every instance this home has ever had. */
export function allInstances(home: string): Instance[] {
  const { server } = homePaths(home);
  const others = namesIn(server).filter((name) => name.startsWith(OTHER_PREFIX));
  return [instanceIn(home, server), ...others.map((name) => instanceIn(home, join(server, name)))];
}

/** Creates the instance's folders, for their owner only. */
export function createInstanceFolders(instance: Instance): void {
  mkdirSync(instance.logs, { recursive: true, mode: 0o700 });
}

/** Where one of the instance's processes writes what it has to say. */
export function logFile(instance: Instance, name: string): string {
  return join(instance.logs, `${name}.log`);
}

const OTHER_PREFIX = 'other-';

function instanceIn(home: string, folder: string): Instance {
  return {
    home,
    folder,
    lock: join(folder, 'supervisor.lock'),
    state: join(folder, 'state.json'),
    control: controlSocket(folder),
    logs: join(folder, 'logs'),
    ports: join(folder, 'ports.json'),
    database: join(folder, 'temporal.db'),
  };
}

// The kernel takes about a hundred bytes of socket path. A deeper home gets its socket in a folder with a short name;
// who may use it is decided by the folder's owner and mode, checked when the supervisor listens.
const LONGEST_SOCKET_PATH = 100;

function controlSocket(folder: string): string {
  const socket = join(folder, 'control.sock');
  if (Buffer.byteLength(socket) <= LONGEST_SOCKET_PATH) return socket;
  return join(tmpdir(), `errand-${userInfo().uid}-${digest(folder)}`, 'control.sock');
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

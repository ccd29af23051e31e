import { randomInt } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Where the embedded server listens, all on loopback. */
export interface ServerPorts {
  readonly grpc: number;
  readonly ui: number;
  readonly http: number;
  readonly metrics: number;
}

export const LOOPBACK = '127.0.0.1';

export interface ClaimPortsOptions {
  /** Where the choice is remembered, so that addresses stay the same for years. */
  readonly file: string;
  readonly log: (line: string) => void;
}

/** The remembered ports; one that a stranger has taken is replaced, remembered anew, and said. */
export async function claimPorts({ file, log }: ClaimPortsOptions): Promise<ServerPorts> {
  const remembered = readPorts(file);
  const taken = new Set<number>();
  const claim = async (use: keyof ServerPorts) => {
    const port = await freePort(remembered?.[use], taken);
    if (remembered && port !== remembered[use]) {
      log(`port ${remembered[use]} (${use}) is taken by another program; the server now uses ${port}`);
    }
    return port;
  };
  const ports = {
    grpc: await claim('grpc'),
    ui: await claim('ui'),
    http: await claim('http'),
    metrics: await claim('metrics'),
  };
  if (JSON.stringify(ports) !== JSON.stringify(remembered)) remember(file, ports);
  return ports;
}

async function freePort(wanted: number | undefined, taken: Set<number>): Promise<number> {
  let port = wanted ?? randomPort();
  while (taken.has(port) || !(await isFree(port))) port = randomPort();
  taken.add(port);
  return port;
}

// Below the range that systems hand out by themselves (Linux from 32768, macOS from 49152): there an outgoing
// connection of any program, a waiting worker's included, could take the port while the server is down.
function randomPort(): number {
  return randomInt(20_000, 32_000);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    });
    probe.listen({ host: LOOPBACK, port, exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

function readPorts(file: string): ServerPorts | undefined {
  try {
    return toPorts(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const isForgotten = (error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError;
    if (isForgotten) return undefined;
    throw error;
  }
}

function toPorts(value: unknown): ServerPorts | undefined {
  const { grpc, ui, http, metrics } = (value ?? {}) as Partial<Record<keyof ServerPorts, unknown>>;
  const isPort = (port: unknown): port is number => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  return isPort(grpc) && isPort(ui) && isPort(http) && isPort(metrics) ? { grpc, ui, http, metrics } : undefined;
}

function remember(file: string, ports: ServerPorts): void {
  const draft = `${file}.draft`;
  writeFileSync(draft, `${JSON.stringify(ports)}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

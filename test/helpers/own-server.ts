import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureServer, serverStatus, stopServer } from '../../src/server/index.ts';
import { waitFor } from './wait.ts';

/** A Temporal server that a test may stop, kill and bring back, unlike the one that the test run shares. */
export interface OwnServer {
  readonly address: string;
  /** The supervisor would bring it back at once: kept from it until `comeBack`. */
  kill(): Promise<void>;
  comeBack(): Promise<void>;
  /** Process of the server now. */
  pid(): Promise<number>;
  close(): Promise<void>;
}

export async function startOwnServer(): Promise<OwnServer> {
  const home = await mkdtemp(join(tmpdir(), 'errand-own-server-'));
  const options = { home, workers: 0, buildId: 'tests', log: () => undefined };
  const { address, pids } = await ensureServer(options);
  const pid = () =>
    waitFor('the Temporal server to run', async () => {
      const { instances } = await serverStatus({ home });
      return instances[0]?.temporal?.pid;
    });
  return {
    address,
    pid,
    kill: async () => {
      process.kill(pids.supervisor, 'SIGSTOP');
      process.kill(await pid(), 'SIGKILL');
    },
    comeBack: async () => {
      process.kill(pids.supervisor, 'SIGCONT');
      const info = await ensureServer(options);
      if (info.address !== address) throw new Error(`the server came back at ${info.address}, not ${address}`);
    },
    close: async () => {
      process.kill(pids.supervisor, 'SIGCONT');
      await stopServer({ home, log: () => undefined });
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** For scripts beside the tests: gone when the work is done. */
export async function withOwnServer<T>(work: (address: string) => Promise<T>): Promise<T> {
  const server = await startOwnServer();
  try {
    return await work(server.address);
  } finally {
    await server.close();
  }
}

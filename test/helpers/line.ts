import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A line to the server that a test can cut: what hangs at its far end learns of it at once. */
export interface Line {
  readonly address: string;
  /** Ends every connection; new ones are taken. */
  cut(): void;
  close(): Promise<void>;
}

/** Opens a line to `target` (`host:port`) on a free port of loopback. */
export async function openLine(target: string): Promise<Line> {
  const [host, port] = target.split(':');
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // Either end may go away at any time; the other one is then closed, which is all there is to do.
    socket.on('error', () => socket.destroy());
  };
  const server = createServer((near) => {
    const far = connect({ host, port: Number(port) });
    keep(near);
    keep(far);
    near.pipe(far).pipe(near);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

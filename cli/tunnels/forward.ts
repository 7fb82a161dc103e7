/** Local ports whose connections go through tunnels. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import type { Output } from '../output.ts';
import { takeSignals } from '../signals.ts';
import { carry } from './tunnel.ts';

/** Only this computer may use the tunnel. */
const HOST = '127.0.0.1';

export interface Forwarded {
  readonly port: number;
  /** Closes its connections too. */
  close(): void;
}

/** Listens at a port of the loopback (0: a free one); each connection gets its own tunnel. */
export async function listen(
  port: number,
  open: () => Promise<WebSocket>,
  output: Output,
): Promise<Forwarded> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    void carry(socket, open, (error) => output.warn(error.message)).finally(() => sockets.delete(socket));
  });
  await listening(server, port);
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

async function listening(server: Server, port: number): Promise<void> {
  server.listen({ port, host: HOST, exclusive: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${code})`;
    throw new ClientError(`local port ${port} ${why}`, EXIT.conflict, 'Choose another: LOCAL:PORT');
  }
}

/** `8080`, or `LOCAL:PORT`. Throws UsageError. */
export function portPair(word: string): { readonly local: number; readonly far: number } {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(word);
  const far = Number(match?.[2]);
  const local = Number(match?.[1] ?? match?.[2]);
  if (match === null || far < 1 || far > 65_535 || local > 65_535)
    throw new UsageError(`${word} is not a port`, 'Give a port of the machine, or LOCAL:PORT');
  return { local, far };
}

/** Resolves when the command is interrupted. */
export function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => void takeSignals(() => resolve()));
}

/** Connections to listeners of our own on this host. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { AppError } from '../platform/errors.ts';

const LOOPBACK = '127.0.0.1';
const OPTIONS = { allowHalfOpen: true, noDelay: true, keepAlive: true } as const;

/** Throws `engine_unavailable`. */
export async function dialed(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port, ...OPTIONS });
  try {
    await once(socket, 'connect');
    return socket;
  } catch (cause) {
    throw new AppError('engine_unavailable', 'The server of the database accepts no connections now', {
      hint: 'try again in a moment',
      retryAfterSeconds: 5,
      cause,
    });
  }
}

/** The two ends of a private connection: the listener accepts only the expected port. */
export async function socketPair(): Promise<readonly [Socket, Socket]> {
  const server = createServer(OPTIONS);
  server.listen({ port: 0, host: LOOPBACK });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const others: Socket[] = [];
  server.on('connection', (socket) => others.push(socket));
  const near = connect({ host: LOOPBACK, port, ...OPTIONS });
  try {
    await once(near, 'connect');
    const take = () => {
      const far = others.find(({ remotePort }) => remotePort === near.localPort);
      if (far !== undefined) resolve(far);
    };
    server.on('connection', take);
    take();
    const far = await promise;
    for (const other of others) if (other !== far) other.destroy();
    return [near, far];
  } finally {
    server.close();
  }
}

/** A connection to a server that can be blocked, so that bytes wait and no connection ends, or cut. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export class TcpProxy {
  readonly #sockets = new Set<Socket>();
  #server = createServer();
  #isBlocked = false;

  /**
   * Resolves once it accepts connections for that port of this host, at `address`. `filter` creates for each
   * connection a transform of the server's bytes.
   */
  static async to(
    port: number,
    address = '127.0.0.1',
    filter: () => (bytes: Buffer) => Buffer = () => (bytes) => bytes,
  ): Promise<TcpProxy> {
    const proxy = new TcpProxy();
    proxy.#server.on('connection', (client) => {
      const server = connect({ host: '127.0.0.1', port });
      for (const [from, into, through] of [
        [client, server, (bytes: Buffer) => bytes],
        [server, client, filter()],
      ] as const) {
        proxy.#sockets.add(from);
        if (proxy.#isBlocked) from.pause();
        from.on('data', (bytes: Buffer) => into.write(through(bytes)));
        from.on('error', () => into.destroy());
        from.on('close', () => {
          proxy.#sockets.delete(from);
          into.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => proxy.#server.listen(0, address, resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  block(): void {
    this.#isBlocked = true;
    for (const socket of this.#sockets) socket.pause();
  }

  unblock(): void {
    this.#isBlocked = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends the connections on both sides; data in transit is lost. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

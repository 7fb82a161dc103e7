/** Listens at an address of this host. */
import type { Server } from 'node:net';

export interface Place {
  readonly address: string;
  readonly port: number;
}

/** Resolves with null once the server listens, else with the error. No later error ends the process. */
export function listenAt(server: Server, { address, port }: Place): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    // Also of accepting a later connection, as when no file descriptor is left: that client is not served.
    server.on('error', resolve);
    server.listen({ host: address, port, exclusive: true }, () => resolve(null));
  });
}

export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

/** Listens at an address of this host. */
import { createServer, type Server } from 'node:net';

export interface Place {
  readonly address: string;
  readonly port: number;
}

/** Of every host, and no machine's. What cannot be had here is taken at every address of the host. */
export const NEUTRAL = '127.1.0.0';

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

/** Why nobody of this process could listen there; undefined: it could. */
export async function refusal(place: Place): Promise<string | undefined> {
  const server = createServer();
  const error = await listenAt(server, place);
  if (error === null) await closed(server);
  return error?.code;
}
